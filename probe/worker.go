package probe

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Worker runs one probe in a goroutine of its own until Stop. Workers share nothing: two of them on one
// container do not know of each other.
type Worker struct {
	cancel  context.CancelFunc
	done    chan struct{}
	changed chan struct{} // holds one: spec is to be read again

	mu      sync.Mutex
	spec    Spec
	result  Result
	abandon context.CancelFunc // ends the probe under way; nil between probes
}

// Start begins to probe. report is called in the worker's goroutine after every probe, and when Since
// changes; it must not call Stop. The worker ends with ctx or with Stop, which must be called in any case.
func Start(ctx context.Context, spec Spec, report func(Result)) (*Worker, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &Worker{
		cancel: cancel, done: make(chan struct{}), changed: make(chan struct{}, 1),
		spec: spec, result: knowing(spec.Known).result,
	}
	go w.run(ctx, report)
	return w, nil
}

// Update puts another spec in force at once: a new period counts from the last probe. The probe under way
// ends under the old one, unless Since changes, which abandons it.
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
	default: // the last notice is still unread
	}
	return nil
}

// Result is the latest, Unknown before the first.
func (w *Worker) Result() Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.result
}

// Stop ends the probe under way and waits until the goroutine is gone; no report comes afterwards. It may be
// called more than once.
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
	learnt := knowing(spec.Known)
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

// probe runs the probe once, and returns when it started. The outcome does not count when the thing probed has changed
// meanwhile, or when the probe could not run.
func (w *Worker) probe(ctx context.Context, spec Spec) (outcome Outcome, started time.Time, counts bool) {
	if spec.Admit != nil {
		waiting, abandon := context.WithCancel(ctx)
		defer abandon()
		if !w.underWay(abandon, spec) {
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
	if !w.underWay(abandon, spec) {
		return Outcome{}, time.Time{}, false
	}
	outcome = safely(ctx, spec.Prober)
	outcome.Message = tidy(outcome.Message)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.abandon = nil
	return outcome, started, outcome.State != "" && w.spec.Since.Equal(spec.Since)
}

// underWay has Update call abandon when the thing probed changes. It reports whether that is still the one of spec.
func (w *Worker) underWay(abandon context.CancelFunc, spec Spec) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.abandon = abandon
	return w.spec.Since.Equal(spec.Since)
}

// safely makes an outcome of a panic: one probe's fault is not to end the program with all others.
func safely(ctx context.Context, p Prober) (outcome Outcome) {
	defer func() {
		if r := recover(); r != nil {
			outcome = Outcome{State: Unknown, Message: fmt.Sprintf("the probe panicked: %v", r)}
		}
	}()
	return p.Probe(ctx)
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

// first is the time of the first probe of a thing.
func (s Spec) first(began, now time.Time) time.Time {
	since := s.Since
	if since.IsZero() {
		since = began
	}
	t := now.Add(max(since.Add(s.StartDelay).Sub(now), 0)) // with now's monotonic clock: that of the wall may be set
	if s.Jitter > 0 {
		t = t.Add(rand.N(s.Jitter)) //nolint:gosec // spreads load, keeps no secret
	}
	return t
}

// aligned is when a probe starts that is due at t.
func (s Spec) aligned(t time.Time) time.Time {
	if s.Align == nil {
		return t
	}
	return t.Add(s.Align(t))
}

// again moves a planned probe to where s, which replaces old, would have it. Before the first probe that is a
// matter of the start delay, afterwards of the period.
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
