package criconformance

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/test/kit/poll"
)

func (s *suite) stopObedient(t *testing.T) {
	id := s.pod(t).start(t, Obedient, 0)
	s.running(t, id)
	took := s.stop(t, id, 20*time.Second)
	if got := s.exited(t, id); got.ExitCode != 7 {
		t.Errorf("exit code %d, want the 7 of its SIGTERM handler", got.ExitCode)
	}
	if took > 10*time.Second {
		t.Errorf("stop took %s, want not to wait for the grace period", took)
	}
}

func (s *suite) stopStubborn(t *testing.T) {
	id := s.pod(t).start(t, Stubborn, 0)
	s.running(t, id)
	const grace = 1100 * time.Millisecond // rounded up to 2 s
	took := s.stop(t, id, grace)
	if got := s.exited(t, id); got.ExitCode != 137 {
		t.Errorf("exit code %d, want the 137 of SIGKILL", got.ExitCode)
	}
	if took < 1900*time.Millisecond {
		t.Errorf("stop took %s, want no less than the grace period", took)
	}
}

func (s *suite) stopNow(t *testing.T) {
	id := s.pod(t).start(t, Obedient, 0)
	s.running(t, id)
	s.stop(t, id, 0)
	if got := s.exited(t, id); got.ExitCode != 137 {
		t.Errorf("exit code %d, want the 137 of SIGKILL", got.ExitCode)
	}
}

// A stop that is given up leaves the container to the next one, which brings it to its end.
func (s *suite) stopRepeated(t *testing.T) {
	id := s.pod(t).start(t, Stubborn, 0)
	s.running(t, id)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := s.client.StopContainer(ctx, id, time.Minute); !errors.Is(err, cri.ErrDeadline) {
		t.Fatalf("StopContainer given up = %v, want ErrDeadline", err)
	}
	s.stop(t, id, time.Second)
	if got := s.exited(t, id); got.ExitCode != 137 {
		t.Errorf("exit code %d, want the 137 of SIGKILL", got.ExitCode)
	}
}

func (s *suite) stopIdempotent(t *testing.T) {
	id := s.pod(t).start(t, Brief, 0)
	s.exited(t, id)
	s.stop(t, id, time.Minute)
	if got := s.exited(t, id); got.ExitCode != 3 {
		t.Errorf("exit code %d, want its own 3", got.ExitCode)
	}
	s.stop(t, strings.Repeat("0", 64), time.Minute)
	s.stop(t, "0000", time.Minute)
	if err := s.client.StopContainer(t.Context(), "", time.Minute); err == nil {
		t.Error("stop of an empty ID succeeds")
	}
}

// A short ID may be the beginning of anybody's.
func (s *suite) stopPrefix(t *testing.T) {
	id := s.pod(t).start(t, Obedient, 0)
	s.stop(t, id[:20], 0)
	if err := s.client.RemoveContainer(t.Context(), id[:20]); err != nil {
		t.Errorf("RemoveContainer = %v, want it to find nothing", err)
	}
	if got, err := s.client.ContainerStatus(t.Context(), id); err != nil || got.State != identity.StateRunning {
		t.Errorf("container is %s, %v; want it untouched", got.State, err)
	}
}

func (s *suite) remove(t *testing.T) {
	p := s.pod(t)
	for name, program := range map[string]string{"exited": Brief, "running": Stubborn} {
		id := p.start(t, program, 0)
		if program == Brief {
			s.exited(t, id)
		}
		for _, time := range []string{"first", "second"} {
			if err := s.client.RemoveContainer(t.Context(), id); err != nil {
				t.Errorf("%s removal of what is %s: %v", time, name, err)
			}
		}
		if _, err := s.client.ContainerStatus(t.Context(), id); !errors.Is(err, cri.ErrNotFound) {
			t.Errorf("status after the removal of what was %s: %v, want ErrNotFound", name, err)
		}
	}
}

// running waits until the program has set its trap, which a runtime's "started" does not say.
func (s *suite) running(t *testing.T, id string) {
	t.Helper()
	poll.Until(t, "program of "+id+" is ready", func() bool {
		res, err := s.client.ExecSync(t.Context(), id, Shell(ExecReady), 5*time.Second)
		return err == nil && res.ExitCode == 0
	})
}

func (s *suite) stop(t *testing.T, id string, grace time.Duration) time.Duration {
	t.Helper()
	start := time.Now()
	if err := s.client.StopContainer(t.Context(), id, grace); err != nil {
		t.Fatalf("StopContainer: %v", err)
	}
	return time.Since(start)
}
