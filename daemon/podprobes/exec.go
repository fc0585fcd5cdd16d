package podprobes

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/probe/turns"
)

// execer runs one probe's commands in one container instance, one at a time, when it is the pod's turn.
//
// A call that the runtime does not end in time is left to the runtime, which kills the command then: broken off by us
// it might live on. Where a child of the command holds the output open the runtime does not answer at all; until our
// own deadline for the call has passed the probe fails without another call, so that a probe that leaves children
// behind cannot take the runtime away from the others.
type execer struct {
	runtime Runtime
	id      string
	timeout time.Duration
	calls   context.Context //nolint:containedctx // that of the Manager's life, which outlasts a probe's
	work    *sync.WaitGroup // calls under way
	busy    chan struct{}   // holds one while a call is under way
	queue   *turns.Queue
	owner   turns.Owner
	waited  func(time.Duration) // is called with how long the probe waited for the pod's turn
	pace    turns.Pace          // of the goroutine of the call
	turn    *turns.Turn         // of the next call; of the worker's goroutine
}

var errBusy = fmt.Errorf("the command before has not ended: %w", context.DeadlineExceeded)

// admit waits for the turn to run the next command.
func (e *execer) admit(ctx context.Context) (func(), error) {
	if len(e.busy) > 0 {
		return func() {}, nil // Exec fails without a call
	}
	due := time.Now()
	turn, err := e.queue.Take(ctx, e.owner)
	if err != nil {
		return nil, err
	}
	e.waited(time.Since(due))
	e.turn = turn
	return func() {
		if e.turn != nil {
			e.turn.End()
			e.turn = nil
		}
	}, nil
}

// Exec implements probe.Execer. It is called after admit.
func (e *execer) Exec(ctx context.Context, command []string) (probe.Execution, error) {
	if e.turn == nil {
		return probe.Execution{}, errBusy
	}
	select {
	case e.busy <- struct{}{}:
	default:
		return probe.Execution{}, errBusy
	}
	type answer struct {
		result cri.ExecResult
		err    error
	}
	answers := make(chan answer, 1)
	turn := e.turn
	e.turn = nil
	e.work.Go(func() {
		defer func() { <-e.busy }()
		defer turn.End()
		begin := time.Now()
		result, err := e.runtime.ExecSync(e.calls, e.id, command, e.timeout)
		if err == nil || errors.Is(err, cri.ErrDeadline) {
			e.pace.Observe(e.queue, time.Since(begin), err == nil)
		}
		answers <- answer{result, err}
	})
	select {
	case a := <-answers:
		err := execError(a.err)
		if a.result.ExitCode == killed || err != nil {
			letContainerEnd(ctx)
		}
		return probe.Execution{ExitCode: int(a.result.ExitCode), Stdout: a.result.Stdout, Stderr: a.result.Stderr}, err
	case <-ctx.Done():
		return probe.Execution{}, ctx.Err()
	}
}

const (
	// killed is the exit code of a command that SIGKILL has ended: 128 and the signal's number, as in a shell.
	killed = 128 + 9
	// endGrace is how much later than the answer to an exec the runtime's event may report that the container has ended.
	endGrace = time.Second
)

// letContainerEnd waits until the runtime would have reported that the container has ended, which stops the probe and
// ends ctx. The command was then killed with the container (pid_namespaces(7)), which is no result of the application.
func letContainerEnd(ctx context.Context) {
	timer := time.NewTimer(endGrace)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// execError translates an error of the runtime into one of package probe. A container that is gone or a runtime that does
// not answer is no result of the application: events report the former, the latter passes.
func execError(err error) error {
	switch {
	case errors.Is(err, cri.ErrDeadline):
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	case errors.Is(err, cri.ErrUnavailable), errors.Is(err, cri.ErrNotFound), errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: %w", probe.ErrNotRun, err)
	case err != nil:
		return errors.New(randomID.ReplaceAllString(err.Error(), "…"))
	}
	return nil
}

// randomID is what runtimes call an exec. It is another each time, which would make the same fault a new one.
var randomID = regexp.MustCompile(`[0-9a-f]{64}`)

// nowhere stands in for the container when a spec is checked.
type nowhere struct{}

func (nowhere) Exec(context.Context, []string) (probe.Execution, error) {
	return probe.Execution{}, probe.ErrNotRun
}
