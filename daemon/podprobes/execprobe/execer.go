// Package execprobe runs the commands of exec probes in container instances through CRI, as the queue of the node's exec
// probes lets them.
package execprobe

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

// Runtime runs commands in containers; *cri.Client has it.
type Runtime interface {
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (cri.ExecResult, error)
}

// Execer runs one probe's commands in one container instance, one at a time, when it is the pod's turn.
//
// A call that the runtime does not end in time is left to the runtime, which kills the command then: broken off by us
// it might live on. Where a child of the command holds the output open the runtime does not answer at all; until our
// own deadline for the call has passed the probe fails without another call, so that a probe that leaves children
// behind cannot take the runtime away from the others.
type Execer struct {
	Runtime Runtime
	ID      string // of the container instance
	Timeout time.Duration
	Calls   context.Context //nolint:containedctx // that of the Manager's life, which outlasts a probe's
	Work    *sync.WaitGroup // calls under way
	Busy    chan struct{}   // holds one while a call is under way
	Queue   *turns.Queue
	Owner   turns.Owner
	Waited  func(time.Duration) // is called with how long the probe waited for the pod's turn
	pace    turns.Pace          // of the goroutine of the call
	turn    *turns.Turn         // of the next call; of the worker's goroutine
}

var errBusy = fmt.Errorf("the previous command has not ended: %w", context.DeadlineExceeded)

// Admit waits for the turn to run the next command.
func (e *Execer) Admit(ctx context.Context) (func(), error) {
	if len(e.Busy) > 0 {
		return func() {}, nil // Exec fails without a call
	}
	due := time.Now()
	turn, err := e.Queue.Take(ctx, e.Owner)
	if err != nil {
		return nil, err
	}
	e.Waited(time.Since(due))
	e.turn = turn
	return func() {
		if e.turn != nil {
			e.turn.End()
			e.turn = nil
		}
	}, nil
}

// Exec implements probe.Execer. It is called after Admit.
func (e *Execer) Exec(ctx context.Context, command []string) (probe.Execution, error) {
	if e.turn == nil {
		return probe.Execution{}, errBusy
	}
	select {
	case e.Busy <- struct{}{}:
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
	e.Work.Go(func() {
		defer func() { <-e.Busy }()
		defer turn.End()
		begin := time.Now()
		result, err := e.Runtime.ExecSync(e.Calls, e.ID, command, e.Timeout)
		if err == nil || errors.Is(err, cri.ErrDeadline) {
			e.pace.Observe(e.Queue, time.Since(begin), err == nil)
		}
		answers <- answer{result, err}
	})
	select {
	case a := <-answers:
		err := classify(a.err)
		if a.result.ExitCode == killed || err != nil {
			waitForContainerEnd(ctx)
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

// waitForContainerEnd waits until the runtime would have reported that the container has ended, which stops the probe and
// ends ctx. The command was then killed with the container (pid_namespaces(7)), which is no result of the application.
func waitForContainerEnd(ctx context.Context) {
	timer := time.NewTimer(endGrace)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// classify translates an error of the runtime into one of package probe. A container that is gone or a runtime that does
// not answer, or is short of some resource, is no result of the application: events report the former, the latter passes.
func classify(err error) error {
	switch {
	case errors.Is(err, cri.ErrDeadline):
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	case errors.Is(err, cri.ErrUnavailable), errors.Is(err, cri.ErrExhausted), errors.Is(err, cri.ErrNotFound), errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: %w", probe.ErrNotRun, err)
	case err != nil:
		return errors.New(randomID.ReplaceAllString(err.Error(), "…"))
	}
	return nil
}

// randomID is what runtimes call an exec. It is another each time, which would make the same fault a new one.
var randomID = regexp.MustCompile(`[0-9a-f]{64}`)
