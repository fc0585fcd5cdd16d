package sidecarmode

import (
	"context"
	"log/slog"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/refit-project/refit/signal"
	"github.com/refit-project/refit/test/kit/poll"
)

// A process that a command leaves behind becomes a child of PID 1, here of this test, and is waited for. A command whose
// parent still waits for it is not.
func TestProcessesLeftBehindAreReaped(t *testing.T) {
	t.Parallel()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Skip(err)
	}
	fs, err := signal.New("/proc")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "sh -c 'exit 0' & sleep 0.05; true").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "(sleep 0.1; exit 0) & exit 0").Run(); err != nil {
		t.Fatal(err)
	}
	dead := func() []int {
		all, err := fs.DeadChildren(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	poll.Until(t, "an orphan", func() bool { return len(dead()) > 0 })
	orphan := dead()[0]
	ctx, cancel := context.WithCancel(t.Context())
	var reaper sync.WaitGroup
	reaper.Go(func() { reap(ctx, fs, 20*time.Millisecond, slog.New(slog.DiscardHandler)) })
	poll.Until(t, "reaped", func() bool { return !slices.Contains(dead(), orphan) })
	cancel()
	reaper.Wait()
}
