package why_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/refit-project/refit/cli/why"
)

// An error of kubelet may have control sequences, which change what a terminal shows.
func TestTextHasNoControlCharacters(t *testing.T) {
	t.Parallel()
	c := config(t)
	c.Logs = func(context.Context, string, string, string, int64) (string, error) {
		return "", errors.New("\x1b[2Jlost")
	}
	var out bytes.Buffer
	if err := why.Run(t.Context(), c, &out, "web"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "cannot be read: [2Jlost\n") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q", out.String())
	}
}

func TestPodWithoutANodeIsSaidToHaveNone(t *testing.T) {
	t.Parallel()
	pending := pod()
	pending.Name, pending.Spec.NodeName, pending.Status.ContainerStatuses = "pending", "", nil
	var out bytes.Buffer
	if err := why.Run(t.Context(), config(t, pending), &out, "pending"); err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(out.String(), "\n"); first != "pod shop/pending is not bound to a node" {
		t.Errorf("%q", first)
	}
}
