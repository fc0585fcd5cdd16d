package doctor_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/refit-project/refit/internal/doctor"
)

// An error of the API server, or of a webhook, may have control sequences, which change what a terminal shows.
func TestTextHasNoControlCharacters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.read["refit-manager"] = errors.New("\x1b[2Jlost")
	var out bytes.Buffer
	if err := doctor.Run(t.Context(), doctor.Config{API: w.client(t), System: "refit-system", Namespace: "shop", Now: now}, &out); !errors.Is(err, doctor.ErrUnhealthy) {
		t.Errorf("%v", err)
	}
	if !strings.Contains(out.String(), "[2Jlost\n") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q", out.String())
	}
}
