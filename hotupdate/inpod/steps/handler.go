package steps

import (
	"context"
	"slices"
	"syscall"
	"time"

	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/signal"
)

const (
	// A process younger than startupTime may not have installed its signal handler. awaitHandler waits up to handlerTimeout for it.
	// After that the signal is sent anyway, because ending the program may be intended.
	startupTime     = 10 * time.Second
	handlerTimeout  = 5 * time.Second
	handlerInterval = 20 * time.Millisecond
	// idleTime is how long a program whose runtime has handlers for all signals uses no processor before it is taken as started.
	idleTime = time.Second
)

// awaitHandler waits while the signal would end a process that has just started and has no handler yet.
func (s signaler) awaitHandler(ctx context.Context) {
	if s.signal == syscall.SIGKILL || s.signal == syscall.SIGSTOP { // no program can handle these
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handlerLimit(ctx))
	defer cancel()
	starting := starts{}
	mayLackHandler := func(p signal.Process) bool { return s.mayLackHandler(p, starting) }
	for {
		found, err := s.finder.Find(ctx)
		if err != nil || !slices.ContainsFunc(found, mayLackHandler) || wait.For(ctx, handlerInterval) != nil {
			return
		}
	}
}

// handlerLimit leaves half of the step's time for the signal.
func handlerLimit(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(handlerTimeout, time.Until(deadline)/2)
	}
	return handlerTimeout
}

func (s signaler) mayLackHandler(p signal.Process, starting starts) bool {
	if age, err := signal.Age(p); err != nil || age > startupTime {
		return false
	}
	handling, err := s.finder.FS.Handling(p, s.signal)
	if err != nil {
		return false
	}
	switch handling {
	case signal.DefaultAction:
		return true
	case signal.HandledByRuntime:
		used, err := s.finder.FS.CPUTime(p)
		return err == nil && !starting.idle(p.PID, used, time.Now())
	default:
		return false
	}
}

// starts are the programs that have not been idle yet, by PID.
type starts map[int]usage

// usage is the processor time that a program had used when this changed last.
type usage struct {
	used  time.Duration
	since time.Time
}

// idle reports whether the program has used no processor time for idleTime: it waits for something, and has installed what it needs.
func (s starts) idle(pid int, used time.Duration, now time.Time) bool {
	if last, known := s[pid]; known && last.used == used {
		return now.Sub(last.since) >= idleTime
	}
	s[pid] = usage{used, now}
	return false
}
