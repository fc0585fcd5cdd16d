package main

import (
	"errors"
	"strings"
	"testing"
)

// TestOutputLeavesOutStderr: with an empty module cache go speaks of downloads before it answers.
func TestOutputLeavesOutStderr(t *testing.T) {
	t.Parallel()
	got, err := output(t.Context(), t.TempDir(), "sh", "-c", "echo 'go: downloading example.com' >&2; echo /path/of/tool")
	if err != nil || got != "/path/of/tool" {
		t.Errorf("got %q, %v, want the path alone", got, err)
	}
	_, err = output(t.Context(), t.TempDir(), "sh", "-c", "echo 'no such module' >&2; exit 1")
	if err == nil || !strings.Contains(err.Error(), "no such module") {
		t.Errorf("got %v, want what the command said", err)
	}
}

// TestFailuresAreNamedWithoutTheirOutput: a required test that did not run fails no test, so the runner's last lines say
// nothing of it.
func TestFailuresAreNamedWithoutTheirOutput(t *testing.T) {
	t.Parallel()
	got := failures([]error{errors.New("lint root: exit status 1\na.go:1: unused"), errors.New("chart on the cluster: no test ran")})
	if want := "FAILED: lint root: exit status 1\nFAILED: chart on the cluster: no test ran\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
