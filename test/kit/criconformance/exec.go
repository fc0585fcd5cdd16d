package criconformance

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/internal/identity"
)

func (s *suite) exec(t *testing.T) {
	id := s.pod(t).start(t, Obedient, 0)
	for script, want := range map[string]cri.ExecResult{
		ExecBoth: {Stdout: "out\n", Stderr: "err\n"},
		ExecFail: {ExitCode: 3},
	} {
		got, err := s.client.ExecSync(t.Context(), id, Shell(script), 20*time.Second)
		if err != nil {
			t.Errorf("%s: %v", script, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", script, diff)
		}
	}
	if _, err := s.client.ExecSync(t.Context(), id, Shell(ExecBoth), 0); err == nil {
		t.Error("exec without a timeout is run")
	}
	if _, err := s.client.ExecSync(t.Context(), id, nil, time.Second); err == nil {
		t.Error("exec without a command is run")
	}
}

func (s *suite) execTimeout(t *testing.T) {
	id := s.pod(t).start(t, Obedient, 0)
	start := time.Now()
	_, err := s.client.ExecSync(t.Context(), id, Shell(ExecSlow), time.Second)
	if !errors.Is(err, cri.ErrDeadline) {
		t.Errorf("ExecSync = %v, want ErrDeadline", err)
	}
	if took := time.Since(start); took < 900*time.Millisecond || took > 20*time.Second {
		t.Errorf("took %s, want about the timeout", took)
	}
	if got, err := s.client.ContainerStatus(t.Context(), id); err != nil || got.State != identity.StateRunning {
		t.Errorf("container is %s, %v; want it untouched", got.State, err)
	}
}

func (s *suite) execOutput(t *testing.T) {
	id := s.pod(t).start(t, Obedient, 0)
	got, err := s.client.ExecSync(t.Context(), id, Shell(ExecBig), 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat("x", 16<<10); got.Stdout != want || !got.Truncated {
		t.Errorf("%d bytes kept, truncated: %v; want the first 16 KiB", len(got.Stdout), got.Truncated)
	}
	if _, err := s.client.ExecSync(t.Context(), id, Shell(ExecHuge), 20*time.Second); !errors.Is(err, cri.ErrTooLarge) {
		t.Errorf("4 MiB of output = %v, want ErrTooLarge", err)
	}
}

// Whether the runtime waits for the child is its own affair; that the call ends in time is ours.
func (s *suite) execDaemon(t *testing.T) {
	id := s.pod(t).start(t, Obedient, 0)
	start := time.Now()
	_, err := s.client.ExecSync(t.Context(), id, Shell(ExecDaemon), time.Second)
	if err != nil && !errors.Is(err, cri.ErrDeadline) {
		t.Errorf("ExecSync = %v, want nil or ErrDeadline", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %s, want at most timeout and margin, 3 s", took)
	}
}

func (s *suite) execNotRunning(t *testing.T) {
	id := s.pod(t).start(t, Brief, 0)
	s.exited(t, id)
	if _, err := s.client.ExecSync(t.Context(), id, Shell(ExecBoth), time.Second); err == nil {
		t.Error("exec in an exited container succeeds")
	}
	_, err := s.client.ExecSync(t.Context(), strings.Repeat("0", 64), Shell(ExecBoth), time.Second)
	if !errors.Is(err, cri.ErrNotFound) {
		t.Errorf("exec in an unknown container = %v, want ErrNotFound", err)
	}
}
