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
	// A process younger than startupTime may not have installed its signal handler. awaitHandler waits for it: up to handlerTimeout if the
	// process has none, as ending the program may be intended, and until it is startupTime old if that cannot be seen.
	startupTime     = 10 * time.Second
	handlerTimeout  = 5 * time.Second
	handlerInterval = 20 * time.Millisecond
	// signalTime is left for the signal itself, which waits up to 2 s for processes that were just forked.
	signalTime = 2500 * time.Millisecond
	// idleTime is how long a program whose runtime has handlers for all signals uses no processor before it is taken as started.
	idleTime = time.Second
)

// awaitHandler waits while the signal would end a process that has just started and has no handler yet.
func (s signaler) awaitHandler(ctx context.Context) {
	if s.signal == syscall.SIGKILL || s.signal == syscall.SIGSTOP { // no program can handle these
		return
	}
	ctx, cancel := context.WithTimeout(ctx, startupLimit(ctx))
	defer cancel()
	began, starting := time.Now(), starts{}
	mayLackHandler := func(p signal.Process) bool { return s.mayLackHandler(p, time.Since(began), starting) }
	for {
		found, err := s.finder.Find(ctx)
		if err != nil || !slices.ContainsFunc(found, mayLackHandler) || wait.For(ctx, handlerInterval) != nil {
			return
		}
	}
}

// startupLimit leaves signalTime of the step's time for the signal, or half of the step's time if that is shorter.
func startupLimit(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		return min(startupTime, max(left/2, left-signalTime))
	}
	return startupTime
}

// mayLackHandler decides for a process that was waited for so long already.
func (s signaler) mayLackHandler(p signal.Process, waited time.Duration, starting starts) bool {
	if age, err := signal.Age(p); err != nil || age > startupTime {
		return false
	}
	handling, err := s.finder.FS.Handling(p, s.signal)
	if err != nil {
		return false
	}
	switch handling {
	case signal.DefaultAction:
		return waited < handlerTimeout
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
