package hook_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/internal/hook"
	"github.com/refit-project/refit/internal/identity"
)

// counter is a runtime whose commands take a second, and that counts them.
type counter struct {
	runs  atomic.Int32
	fails int32 // as many of the first
}

func (c *counter) Exec(ctx context.Context, _ identity.ContainerID, _ []string, _ time.Duration) (hook.Output, error) {
	n := c.runs.Add(1)
	select {
	case <-ctx.Done():
		return hook.Output{}, ctx.Err()
	case <-time.After(time.Second):
	}
	if n <= c.fails {
		return hook.Output{}, errors.New("runtime unavailable")
	}
	return hook.Output{}, nil
}

// Two callers that stop the same instance, at the same time or one after another, run its hook once, and both wait for its end.
func TestHookOfAnInstanceIsRunOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var count counter
		runner := hook.New(hook.Config{Executor: &count})
		stop := func(id string) (time.Duration, error) {
			began := time.Now()
			c := call(command("drain"))
			c.ID.ID = id
			err := runner.Run(t.Context(), c)
			return time.Since(began), err
		}
		for range 3 {
			go func() {
				if took, err := stop("c1"); err != nil || took != time.Second {
					t.Errorf("%v after %s", err, took)
				}
			}()
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if took, err := stop("c1"); err != nil || took != 0 {
			t.Errorf("afterwards: %v after %s", err, took)
		}
		if n := count.runs.Load(); n != 1 {
			t.Errorf("run %d times", n)
		}
		if _, err := stop("c2"); err != nil || count.runs.Load() != 2 {
			t.Errorf("another instance: %v, run %d times", err, count.runs.Load())
		}
		time.Sleep(59 * time.Minute)
		if _, err := stop("c1"); err != nil || count.runs.Load() != 2 {
			t.Errorf("within the hour: %v, run %d times", err, count.runs.Load())
		}
		time.Sleep(2 * time.Minute)
		if _, err := stop("c1"); err != nil || count.runs.Load() != 3 {
			t.Errorf("much later: %v, run %d times: instances are not remembered for ever", err, count.runs.Load())
		}
	})
}

// Where instances have no IDs, as in a sidecar, each stop runs the hook.
func TestHookWithoutAnInstanceIsRunEachTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var count counter
		runner := hook.New(hook.Config{Executor: &count})
		for range 2 {
			c := call(command("drain"))
			c.ID = identity.ContainerID{}
			if err := runner.Run(t.Context(), c); err != nil {
				t.Error(err)
			}
		}
		if n := count.runs.Load(); n != 2 {
			t.Errorf("run %d times", n)
		}
	})
}

func TestHookThatFailedIsRunAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		count := counter{fails: 1}
		runner := hook.New(hook.Config{Executor: &count})
		done := make(chan error, 1)
		go func() { done <- runner.Run(t.Context(), call(command("drain"))) }()
		synctest.Wait()
		if err := runner.Run(t.Context(), call(command("drain"))); err != nil {
			t.Errorf("the second: %v", err)
		}
		if err := <-done; err == nil || count.runs.Load() != 2 {
			t.Errorf("the first: %v, run %d times", err, count.runs.Load())
		}
	})
}

// A caller that waits for the hook of another caller has its own grace period.
func TestWaitForAHookEndsWithTheGracePeriod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		runner := hook.New(hook.Config{Executor: &executor{takes: time.Hour}})
		slow := call(command("drain"))
		slow.Timeout = time.Minute
		done := make(chan error, 1)
		go func() { done <- runner.Run(t.Context(), slow) }()
		synctest.Wait()
		began := time.Now()
		err := runner.Run(t.Context(), call(command("drain")))
		if took := time.Since(began); !errors.Is(err, hook.ErrTimeout) || took != 10*time.Second {
			t.Errorf("%v after %s", err, took)
		}
		if err := <-done; !errors.Is(err, hook.ErrTimeout) {
			t.Errorf("the first: %v", err)
		}
	})
}

// A stop was cancelled after the hook: a much later stop of the instance runs it again. A hook in progress is waited for.
func TestForgottenHookIsRunAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var count counter
		runner := hook.New(hook.Config{Executor: &count})
		drain := call(command("drain"))
		runner.Forget(drain.ID) // there is nothing to forget
		first := make(chan error, 1)
		go func() { first <- runner.Run(t.Context(), drain) }()
		synctest.Wait()
		runner.Forget(drain.ID)
		if err := runner.Run(t.Context(), drain); err != nil || count.runs.Load() != 1 {
			t.Errorf("while it runs: %v, run %d times", err, count.runs.Load())
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
		runner.Forget(drain.ID)
		if err := runner.Run(t.Context(), drain); err != nil || count.runs.Load() != 2 {
			t.Errorf("afterwards: %v, run %d times", err, count.runs.Load())
		}
	})
}

// broken is a runtime whose first command panics.
type broken struct{ counter }

func (b *broken) Exec(ctx context.Context, id identity.ContainerID, command []string, timeout time.Duration) (hook.Output, error) {
	output, err := b.counter.Exec(ctx, id, command, timeout)
	if b.runs.Load() == 1 {
		panic("broken")
	}
	return output, err
}

// A panic while a hook runs, which the caller catches, does not let later stops of the instance wait for the end of that run.
func TestHookIsRunAgainAfterAPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var runtime broken
		runner, drain := hook.New(hook.Config{Executor: &runtime}), call(command("drain"))
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_ = runner.Run(t.Context(), drain)
		}()
		if err := runner.Run(t.Context(), drain); err != nil || runtime.runs.Load() != 2 {
			t.Errorf("%v, run %d times", err, runtime.runs.Load())
		}
	})
}
