package probe_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/probe"
)

// A command that is not in time ends with all that it has started: probes run for ever, and would fill the container.
func TestChildrenOfACommandThatIsNotInTimeEndWithIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	local := probe.Local{Env: []string{"PATH=/usr/bin:/bin"}, Dir: dir}
	if _, err := local.Exec(ctx, []string{"/bin/sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $! >pid; wait"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return // gone, or not yet waited for by whoever has adopted it
		}
		if time.Now().After(deadline) {
			t.Fatal("the child lives on")
		}
	}
}

// The longest message is whole.
func TestMessageOfTheGreatestLength(t *testing.T) {
	t.Parallel()
	for length, want := range map[int]int{probe.MaxMessage: probe.MaxMessage, probe.MaxMessage + 1: probe.MaxMessage} {
		echo := probe.Exec{Execer: answer(strings.Repeat("x", length)), Command: []string{"echo"}}
		if got := echo.Probe(t.Context()); got.State != probe.Succeeded || len(got.Message) != want {
			t.Errorf("%d bytes: %s with %d", length, got.State, len(got.Message))
		}
	}
}

// answer is the output of every command.
type answer string

func (a answer) Exec(context.Context, []string) (probe.Execution, error) {
	return probe.Execution{Stdout: string(a)}, nil
}
