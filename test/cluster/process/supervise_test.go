package process_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/refit-project/refit/test/cluster/process"
)

const patience = 20 * time.Second

func TestSupervisedProcessIsRestartedUntilItIsStopped(t *testing.T) {
	defer goleak.VerifyNone(t)
	path := filepath.Join(t.TempDir(), "sleep.json")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- process.Supervise(ctx, path, []string{"/bin/sleep", "3600"}) }()

	var first, second process.Record
	running := func(record *process.Record) func() bool {
		return func() bool {
			var alive bool
			*record, alive = process.Main(path)
			return alive
		}
	}
	if err := process.Until(ctx, patience, running(&first)); err != nil {
		t.Fatalf("never started: %v", err)
	}
	emptyFolder(t, first.PID)
	if err := process.Signal(path, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	again := func() bool { return running(&second)() && second.PID != first.PID }
	if err := process.Until(ctx, patience, again); err != nil {
		t.Fatalf("not started again: %v", err)
	}
	if second.Restarts != 1 {
		t.Errorf("restarts = %d, want 1", second.Restarts)
	}
	// A suspended program must end as well.
	if err := process.Signal(path, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("supervise: %v", err)
	}
	if _, alive := process.Main(path); alive {
		t.Error("the program outlives its supervisor")
	}
}

// emptyFolder fails the test unless the process runs in one, where patterns match nothing.
func emptyFolder(t *testing.T, pid int) {
	t.Helper()
	folder, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
		t.Errorf("runs in %s with %d files, %v; want an empty folder", folder, len(entries), err)
	}
}

func TestStopOfAProcessThatWasNeverStarted(t *testing.T) {
	t.Parallel()
	if err := process.Stop(t.Context(), filepath.Join(t.TempDir(), "none.json"), false); err != nil {
		t.Errorf("stop: %v", err)
	}
}
