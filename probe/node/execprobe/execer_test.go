package execprobe_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/probe/node/execprobe"
	"github.com/refit-project/refit/probe/turns"
)

// runtime answers after a time, whatever becomes of the caller.
type runtime struct {
	takes  time.Duration
	result cri.ExecResult
	err    error
	calls  atomic.Int32
	looks  atomic.Int32
	of     string // the container to which the instance belongs
}

func (r *runtime) ExecSync(context.Context, string, []string, time.Duration) (cri.ExecResult, error) {
	r.calls.Add(1)
	result, err := r.result, r.err
	time.Sleep(r.takes)
	return result, err
}

func (r *runtime) ContainerStatus(context.Context, string) (cri.ContainerStatus, error) {
	r.looks.Add(1)
	return cri.ContainerStatus{Container: cri.Container{Name: r.of}}, nil
}

// bench is one exec probe on a node of four CPUs, in a bubble of its own time.
type bench struct {
	*execprobe.Execer
	t       *testing.T
	runtime *runtime
	waited  []time.Duration
}

func inBench(t *testing.T, test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, runtime: &runtime{takes: 10 * time.Millisecond, of: "game"}}
		var calls sync.WaitGroup
		defer calls.Wait()
		b.Execer = &execprobe.Execer{
			Owns:    func(c *cri.Container) bool { return c.Name == "game" },
			Runtime: b.runtime, ID: "game-1", Timeout: time.Second, Calls: t.Context(), Work: &calls, Busy: make(chan struct{}, 1),
			Queue: turns.New(4, 1), Owner: turns.Owner{Namespace: "shop", Pod: "a"}, Waited: func(d time.Duration) { b.waited = append(b.waited, d) },
		}
		b.Queue.Join(b.Owner)
		test(b)
	})
}

// probe runs the command as a worker does, with a second for it.
func (b *bench) probe() (probe.Execution, error) {
	b.t.Helper()
	done, err := b.Admit(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	defer done()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Second)
	defer cancel()
	return b.Exec(ctx, []string{"check"})
}

func TestTurnThatIsNotUsedIsGivenBack(t *testing.T) {
	t.Parallel()
	inBench(t, func(b *bench) {
		done, err := b.Admit(b.t.Context())
		if err != nil || b.Queue.Load().Running != 1 || len(b.waited) != 1 {
			t.Fatalf("%v, %+v, waited %v", err, b.Queue.Load(), b.waited)
		}
		done()
		if load := b.Queue.Load(); load.Running != 0 {
			t.Errorf("%+v", load)
		}
		if _, err := b.Exec(b.t.Context(), []string{"check"}); !errors.Is(err, context.DeadlineExceeded) || b.runtime.calls.Load() != 0 {
			t.Errorf("%v, %d calls without a turn", err, b.runtime.calls.Load())
		}
	})
}

// The command goes on after the probe has failed. Until it ends it has its turn, and the probe is not run again.
func TestTurnLastsAsLongAsTheCommand(t *testing.T) {
	t.Parallel()
	inBench(t, func(b *bench) {
		b.runtime.takes = 3 * time.Second
		for i := range 3 {
			if _, err := b.probe(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("probe %d: %v", i, err)
			}
			if load := b.Queue.Load(); load.Running != 1 || b.runtime.calls.Load() != 1 {
				t.Errorf("probe %d: %+v, %d calls", i, load, b.runtime.calls.Load())
			}
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		b.runtime.takes = 10 * time.Millisecond
		if _, err := b.probe(); err != nil || b.Queue.Load().Running != 0 || b.runtime.calls.Load() != 2 {
			t.Errorf("after its end: %v, %+v, %d calls", err, b.Queue.Load(), b.runtime.calls.Load())
		}
		if len(b.waited) != 2 {
			t.Errorf("waited %v: want one for each command", b.waited)
		}
	})
}

// Commands that take longer than they could say that the node is crowded. What says nothing of the node changes nothing.
func TestLimitFollowsHowLongCommandsTake(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		takes time.Duration
		err   error
		want  int
	}{
		"as quick as ever":        {10 * time.Millisecond, nil, 4},
		"slow":                    {100 * time.Millisecond, nil, 3},
		"not in time":             {900 * time.Millisecond, cri.ErrDeadline, 3},
		"the runtime is away":     {100 * time.Millisecond, cri.ErrUnavailable, 4},
		"the container is gone":   {100 * time.Millisecond, cri.ErrNotFound, 4},
		"it could not be begun":   {100 * time.Millisecond, errors.New("executable file not found"), 4},
		"a little slower than it": {11 * time.Millisecond, nil, 4},
	} {
		inBench(t, func(b *bench) {
			_, _ = b.probe()
			b.runtime.takes, b.runtime.err = tt.takes, tt.err
			for range 10 {
				_, _ = b.probe()
			}
			if got := b.Queue.Load().Limit; got != tt.want {
				t.Errorf("%s: limit %d, want %d", name, got, tt.want)
			}
		})
	}
}

func TestErrorsOfTheRuntime(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("0123456789abcdef", 4)
	for name, tt := range map[string]struct {
		err  error
		is   error
		text string
	}{
		"not in time":      {fmt.Errorf("exec: %w", cri.ErrDeadline), context.DeadlineExceeded, ""},
		"runtime away":     {fmt.Errorf("exec: %w", cri.ErrUnavailable), probe.ErrNotRun, ""},
		"runtime is short": {fmt.Errorf("exec: %w", cri.ErrExhausted), probe.ErrNotRun, ""},
		"says too much":    {fmt.Errorf("output over 3 bytes: %w", cri.ErrTooLarge), nil, "output over 3 bytes: answer too large"},
		"container gone":   {fmt.Errorf("exec: %w", cri.ErrNotFound), probe.ErrNotRun, ""},
		"daemon ends":      {fmt.Errorf("exec: %w", context.Canceled), probe.ErrNotRun, ""},
		"cannot be begun":  {errors.New("start exec " + id + ": not found"), nil, "start exec …: not found"},
		"it ends as it is": {nil, nil, ""},
	} {
		inBench(t, func(b *bench) {
			b.runtime.err, b.runtime.result = tt.err, cri.ExecResult{ExitCode: 3, Stdout: "out", Stderr: "err"}
			got, err := b.probe()
			if tt.is != nil && !errors.Is(err, tt.is) || tt.text != "" && (err == nil || err.Error() != tt.text) || tt.err == nil && err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if want := (probe.Execution{ExitCode: 3, Stdout: "out", Stderr: "err"}); got != want {
				t.Errorf("%s: %+v", name, got)
			}
		})
	}
}

// It is asked once to whom the instance belongs, unless it is another container.
func TestNothingRunsInAnotherContainer(t *testing.T) {
	t.Parallel()
	inBench(t, func(b *bench) {
		for range 3 {
			if _, err := b.probe(); err != nil {
				b.t.Fatal(err)
			}
		}
		if calls, looks := b.runtime.calls.Load(), b.runtime.looks.Load(); calls != 3 || looks != 1 {
			b.t.Errorf("%d calls after %d looks", calls, looks)
		}
	})
	inBench(t, func(b *bench) {
		b.runtime.of = "bank"
		if _, err := b.probe(); !errors.Is(err, probe.ErrNotRun) || b.runtime.calls.Load() != 0 {
			b.t.Errorf("%v after %d calls", err, b.runtime.calls.Load())
		}
	})
}
