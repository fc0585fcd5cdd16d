package signal_test

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

func TestDeadChildrenAreThoseOfThisProgramThatHaveEnded(t *testing.T) {
	t.Parallel()
	running, lines := startRole(t, "target", "refit-alive", nil)
	expect(t, lines, "ready")
	ended := exec.CommandContext(t.Context(), "true")
	if err := ended.Start(); err != nil {
		t.Fatal(err)
	}
	f := open(t, "/proc")
	dead := func() []int {
		pids, err := f.DeadChildren(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return pids
	}
	for !slices.Contains(dead(), ended.Process.Pid) {
		if t.Context().Err() != nil {
			t.Fatal("a child that has ended is not found")
		}
	}
	if pids := dead(); slices.Contains(pids, running.Process.Pid) || slices.Contains(pids, os.Getpid()) {
		t.Errorf("%v, but one of them is running", pids)
	}
	if err := ended.Wait(); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(dead(), ended.Process.Pid) {
		t.Error("a child that was waited for is found")
	}
}
