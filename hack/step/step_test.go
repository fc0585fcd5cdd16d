package step_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/refit-project/refit/hack/step"
)

func TestRun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		command step.Command
		fault   []string // words of the error; none: it succeeds
		shown   string
	}{
		"quiet":           {command: step.Command{Argv: []string{"sh", "-c", "echo much"}}},
		"echoed":          {command: step.Command{Argv: []string{"sh", "-c", "echo much"}, Echo: true}, shown: "much\n"},
		"fails":           {command: step.Command{Argv: []string{"sh", "-c", "echo why >&2; exit 3"}}, fault: []string{"exit status 3", "why"}},
		"fails, echoed":   {command: step.Command{Argv: []string{"sh", "-c", "echo why; exit 3"}, Echo: true}, fault: []string{"exit status 3"}, shown: "why\n"},
		"environment":     {command: step.Command{Argv: []string{"sh", "-c", "echo $WHO"}, Env: []string{"WHO=me"}, Echo: true}, shown: "me\n"},
		"low priority":    {command: step.Command{Argv: []string{"nice"}, Low: true, Echo: true}, shown: "19\n"},
		"no such program": {command: step.Command{Argv: []string{"no-such-program"}}, fault: []string{"no-such-program"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			err := step.New(&out, t.TempDir()).Run(t.Context(), "a step/of it", tc.command)
			if (err != nil) != (len(tc.fault) > 0) {
				t.Fatalf("error %v, want one with %q", err, tc.fault)
			}
			for _, word := range tc.fault {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("error %v, want one with %q", err, word)
				}
			}
			if got := out.String(); !strings.Contains(got, tc.shown) || tc.shown == "" && strings.Contains(got, "much") {
				t.Errorf("shown %q, want %q", got, tc.shown)
			}
			end := ": done in"
			if err != nil {
				end = ": FAILED in"
			}
			if !strings.Contains(out.String(), "a step/of it"+end) {
				t.Errorf("shown %q, want the end of the step", out.String())
			}
		})
	}
}

// TestOnlyAStepThatPrintsNothingSaysThatItRuns: a program that tells its own progress is not interrupted.
func TestOnlyAStepThatPrintsNothingSaysThatItRuns(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		every time.Duration // a line of the step's own
		want  bool
	}{"silent": {every: 40 * time.Second, want: true}, "tells its progress": {every: 15 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				report := step.New(&out, t.TempDir())
				err := report.Do("build", func() error {
					for spent := time.Duration(0); spent < 80*time.Second; spent += test.every {
						time.Sleep(test.every)
						report.Say("own line")
					}
					return nil
				})
				if got := strings.Contains(out.String(), "build: running for"); err != nil || got != test.want {
					t.Errorf("%v, said so: %t, want %t:\n%s", err, got, test.want, &out)
				}
			})
		})
	}
}

func TestACommandIsToldWhenTheStepsBegan(t *testing.T) {
	t.Parallel()
	before := time.Now()
	var out bytes.Buffer
	report := step.New(&out, t.TempDir())
	after := time.Now()
	if err := report.Run(t.Context(), "step", step.Command{Argv: []string{"sh", "-c", "echo since $PROGRESS_START"}, Echo: true}); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(out.String(), "since ")
	text, _, _ := strings.Cut(rest, "\n")
	if began, err := time.Parse(time.RFC3339Nano, text); err != nil || began.Before(before.Truncate(0)) || began.After(after) {
		t.Errorf("told %q, want a time from %s to %s", text, before, after)
	}
}

// TestInterruptEndsTheChildrenToo has a command whose child would outlive it.
func TestInterruptEndsTheChildrenToo(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		// The child holds the pipe open for as long as it lives.
		script := "sh -c 'exec 3>" + fifo + "; echo up >&3; sleep 600' & wait"
		ended <- step.New(&bytes.Buffer{}, dir).Run(ctx, "step", step.Command{Argv: []string{"sh", "-c", script}})
	}()
	pipe, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipe.Close() }()
	if _, err := pipe.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the error of the context", err)
	}
	if n, err := pipe.Read(make([]byte, 1)); n > 0 || time.Since(began) > 10*time.Second {
		t.Errorf("read %d bytes, %v, after %s: the child lives on", n, err, time.Since(began))
	}
}
