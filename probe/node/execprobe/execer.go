// Package execprobe runs the commands of exec probes in containers through CRI. The queue of the node's exec probes
// decides when.
package execprobe

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/probe/turns"
)

// Runtime runs commands in containers; *cri.Client implements it.
type Runtime interface {
	ContainerStatus(ctx context.Context, id string) (cri.ContainerStatus, error)
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (cri.ExecResult, error)
}

// Execer runs the commands of one probe in one container instance, one at a time, when it is the pod's turn.
//
// If the runtime does not end a call in time, Execer leaves the call to the runtime, which then kills the command: if
// Execer cancelled the call, the command might live on. If a child of the command holds the output open, the runtime
// does not answer at all. Until our own deadline for that call, the probe fails without another call, so that a probe
// that leaves children behind cannot use up the runtime at the expense of others.
type Execer struct {
	Runtime Runtime
	ID      string // of the container instance, from the status of the pod
	// Owns reports whether an instance is of the probed container. Nothing is run in another one, whose ID somebody may have put
	// into the status.
	Owns    func(*cri.Container) bool
	Timeout time.Duration
	Calls   context.Context //nolint:containedctx // the context of the Manager, which outlasts the context of a probe
	Work    *sync.WaitGroup // calls in progress
	Busy    chan struct{}   // holds one element while a call is in progress
	Queue   *turns.Queue
	Owner   turns.Owner
	Guard   *guard.Guard // catches panics of a call, reported for the pod of Subject; both may be nil
	Subject guard.Subject
	Waited  func(time.Duration) // called with how long the probe waited for the pod's turn
	pace    turns.Pace          // used by the goroutine of the call only
	owned   bool                // likewise: Owns has returned true
	turn    *turns.Turn         // of the next call; used by the worker's goroutine only
}

var errBusy = fmt.Errorf("the previous command has not ended: %w", context.DeadlineExceeded)

// Admit waits until it is the pod's turn to run the next command.
func (e *Execer) Admit(ctx context.Context) (func(), error) {
	if len(e.Busy) > 0 {
		return func() {}, nil // Exec will fail without a call
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

// Exec implements probe.Execer. It must be called after Admit.
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
		var result cri.ExecResult
		err := e.Guard.Do("probe", e.Subject, func() (err error) {
			if err = e.check(); err != nil {
				return err
			}
			result, err = e.Runtime.ExecSync(e.Calls, e.ID, command, e.Timeout)
			return err
		})
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

// check returns an error if the instance is not of the probed container.
func (e *Execer) check() error {
	if e.owned {
		return nil
	}
	status, err := e.Runtime.ContainerStatus(e.Calls, e.ID)
	if err != nil {
		return err
	}
	if e.owned = e.Owns(&status.Container); !e.owned {
		return fmt.Errorf("container ID %.12s is not of this container: %w", e.ID, cri.ErrNotFound)
	}
	return nil
}

const (
	// killed is the exit code of a command that was ended by SIGKILL: 128 and the signal's number, as in a shell.
	killed = 128 + 9
	// endGrace is how much later than the answer to an exec the runtime may send the event that the container has ended.
	endGrace = time.Second
)

// waitForContainerEnd waits until the runtime would have reported the end of the container, which stops the probe and
// ends ctx. In that case the command was killed with the container (pid_namespaces(7)), which is not a result of the
// application.
func waitForContainerEnd(ctx context.Context) {
	timer := time.NewTimer(endGrace)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// classify converts an error of the runtime to an error of package probe. If the container is gone, or the runtime does
// not answer or lacks resources, that is no result of the application: events report the former, and the latter is
// temporary.
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

// randomID matches the random ID that runtimes give to an exec. It differs each time, so the same error would look like
// a new one.
var randomID = regexp.MustCompile(`[0-9a-f]{64}`)
