package probe

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Worker runs one probe in its own goroutine until Stop. Workers share nothing: two Workers for one container are
// independent.
type Worker struct {
	cancel  context.CancelFunc
	done    chan struct{}
	changed chan struct{} // holds one element: read spec again

	mu      sync.Mutex
	spec    Spec
	result  Result
	abandon context.CancelFunc // cancels the probe in progress; nil between probes
}

// Start starts a Worker. report is called in the worker's goroutine after every probe, and when Since changes; it must
// not call Stop. The worker ends with ctx or with Stop. Stop must be called in any case.
func Start(ctx context.Context, spec Spec, report func(Result)) (*Worker, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &Worker{
		cancel: cancel, done: make(chan struct{}), changed: make(chan struct{}, 1),
		spec: spec, result: newTracker(spec.Known).result,
	}
	go w.run(ctx, report)
	return w, nil
}

// Update applies another spec at once: a new period counts from the last probe. The probe in progress ends under the
// old spec, unless Since changes, which cancels it.
func (w *Worker) Update(spec Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.abandon != nil && !spec.Since.Equal(w.spec.Since) {
		w.abandon()
	}
	w.spec = spec
	select {
	case w.changed <- struct{}{}:
	default: // the last notification has not been read yet
	}
	return nil
}

// Result returns the latest result, which is Unknown before the first probe.
func (w *Worker) Result() Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.result
}

// Stop cancels the probe in progress and waits until the goroutine has ended; report is not called afterwards. It may
// be called more than once.
func (w *Worker) Stop() {
	w.cancel()
	<-w.done
}

func (w *Worker) run(ctx context.Context, report func(Result)) {
	defer close(w.done)
	defer w.cancel()
	began := time.Now()
	spec := w.current()
	defer func() { Close(spec.Prober) }()
	next := spec.first(began, began)
	learnt := newTracker(spec.Known)
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
			old := spec
			spec = w.current()
			Close(old.Prober)
			if spec.Since.Equal(old.Since) {
				next = spec.again(next, learnt.result.ProbedAt, old)
			} else {
				next = spec.first(began, time.Now())
				learnt = tracker{result: Result{State: Unknown, ChangedAt: time.Now()}}
				w.publish(learnt.result, report)
			}
			timer.Reset(time.Until(next))
			continue
		case <-timer.C:
		}
		outcome, probed, counts := w.probe(ctx, spec)
		if ctx.Err() != nil {
			return
		}
		if counts {
			learnt.result.Late = max(probed.Sub(next), 0)
			w.publish(learnt.observe(outcome, spec.Timing, probed, time.Now()), report)
		}
		next = spec.aligned(later(next.Add(spec.Period), time.Now()))
		timer.Reset(time.Until(next))
	}
}

// probe runs the probe once, and returns when it started. The outcome does not count if the probed application was
// replaced meanwhile, or if the probe could not run.
func (w *Worker) probe(ctx context.Context, spec Spec) (outcome Outcome, started time.Time, counts bool) {
	if spec.Admit != nil {
		waiting, abandon := context.WithCancel(ctx)
		defer abandon()
		if !w.setAbandon(abandon, spec) {
			return Outcome{}, time.Time{}, false
		}
		done, err := spec.Admit(waiting)
		if err != nil {
			return Outcome{}, time.Time{}, false
		}
		defer done()
	}
	started = time.Now()
	ctx, abandon := context.WithTimeout(ctx, spec.Timeout)
	defer abandon()
	if !w.setAbandon(abandon, spec) {
		return Outcome{}, time.Time{}, false
	}
	outcome = recoverPanics(ctx, spec)
	outcome.Message = cleanMessage(outcome.Message)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.abandon = nil
	return outcome, started, outcome.State != "" && w.spec.Since.Equal(spec.Since)
}

// setAbandon registers abandon, which Update calls if the probed application is replaced. It reports whether the
// application is still the one of spec.
func (w *Worker) setAbandon(abandon context.CancelFunc, spec Spec) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.abandon = abandon
	return w.spec.Since.Equal(spec.Since)
}

// recoverPanics converts a panic to an outcome: a panic in one probe must not end the program.
func recoverPanics(ctx context.Context, spec Spec) (outcome Outcome) {
	err := spec.Guard.Do("probe", spec.Subject, func() error {
		outcome = spec.Prober.Probe(ctx)
		return nil
	})
	if err != nil {
		outcome = Outcome{State: Unknown, Message: fmt.Sprintf("the probe could not be run: %v", err)}
	}
	return outcome
}

func (w *Worker) current() Spec {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.spec
}

func (w *Worker) publish(r Result, report func(Result)) {
	w.mu.Lock()
	w.result = r
	w.mu.Unlock()
	report(r)
}

// first returns the time of the first probe of an application instance.
func (s Spec) first(began, now time.Time) time.Time {
	since := s.Since
	if since.IsZero() {
		since = began
	}
	t := now.Add(max(since.Add(s.StartDelay).Sub(now), 0)) // with the monotonic clock of now, because the wall clock may be set
	if s.Jitter > 0 {
		t = t.Add(rand.N(s.Jitter)) //nolint:gosec // spreads load, keeps no secret
	}
	return t
}

// aligned returns when a probe starts that is due at t.
func (s Spec) aligned(t time.Time) time.Time {
	if s.Align == nil {
		return t
	}
	return t.Add(s.Align(t))
}

// again moves a planned probe to the time required by s, which replaces old. Before the first probe this depends on the
// start delay, afterwards on the period.
func (s Spec) again(planned, probed time.Time, old Spec) time.Time {
	if probed.IsZero() {
		return planned.Add(s.StartDelay - old.StartDelay)
	}
	return s.aligned(later(probed.Add(s.Period), time.Now()))
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
