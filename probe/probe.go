package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// State is what is known; the words are those of NodePodProbe's status.
type State string

// The states. The zero value is none of them: nothing has been asked yet counts as Unknown.
const (
	Succeeded State = "Succeeded"
	Failed    State = "Failed"
	Unknown   State = "Unknown"
)

// ErrNotRun is wrapped by the error of an Execer that could not run the command for reasons that say nothing about the
// thing probed, for example a container runtime that is being restarted. The outcome then counts neither way.
var ErrNotRun = errors.New("the probe could not run")

// Outcome is one answer. One without a State is none, and counts neither way.
type Outcome struct {
	State State
	// Message is the result on success, such as the trimmed body, and the reason otherwise: valid UTF-8 of at
	// most MaxMessage bytes.
	Message string
}

// Prober is one kind of probe. Probe returns soon after ctx is done; the deadline of ctx is the probe's timeout.
// It is called by one goroutine at a time. A Prober that keeps something open between probes is an io.Closer.
// A Worker closes it when it does not use it any more, and so must who calls Probe, see Close.
type Prober interface {
	Probe(ctx context.Context) Outcome
}

// Close closes what a Prober keeps open between probes, if it keeps anything.
func Close(p Prober) {
	if kept, ok := p.(io.Closer); ok {
		_ = kept.Close() // of a connection without a request there is nothing to lose
	}
}

// Timing says when to ask and how often an answer must repeat to count. The fields are those of corev1.Probe.
type Timing struct {
	// StartDelay is waited after Spec.Since, before the first probe.
	StartDelay time.Duration
	// Period is the time from when one probe was due to when the next is; from its end, if that is later.
	Period time.Duration
	// Timeout bounds each probe; it may be longer than Period, probes never overlap.
	Timeout time.Duration
	// SuccessThreshold and FailureThreshold are how many equal answers in a row change the state. Unknown
	// counts as a failure does.
	SuccessThreshold, FailureThreshold int
	// Jitter delays the first probe by a random time below it, so that what started together does not ask
	// together for ever.
	Jitter time.Duration
}

// WithDefaults fills what is zero with Kubernetes' defaults: every 10 s, 1 s of timeout, one success, three
// failures. StartDelay and Jitter default to none.
func (t Timing) WithDefaults() Timing {
	if t.Period == 0 {
		t.Period = 10 * time.Second
	}
	if t.Timeout == 0 {
		t.Timeout = time.Second
	}
	if t.SuccessThreshold == 0 {
		t.SuccessThreshold = 1
	}
	if t.FailureThreshold == 0 {
		t.FailureThreshold = 3
	}
	return t
}

// minPeriod keeps a mistaken unit from becoming a busy loop.
const minPeriod = 10 * time.Millisecond

// Validate reports all faults at once.
func (t Timing) Validate() error {
	var faults []error
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(t.StartDelay < 0, "start delay %s: negative", t.StartDelay)
	fault(t.Period < minPeriod, "period %s: below %s", t.Period, minPeriod)
	fault(t.Timeout <= 0, "timeout %s: not positive", t.Timeout)
	fault(t.SuccessThreshold < 1, "success threshold %d: below 1", t.SuccessThreshold)
	fault(t.FailureThreshold < 1, "failure threshold %d: below 1", t.FailureThreshold)
	fault(t.Jitter < 0, "jitter %s: negative", t.Jitter)
	return errors.Join(faults...)
}

// Spec is all that a Worker needs to know.
type Spec struct {
	Prober Prober
	Timing
	// Since is when the thing probed started, zero for the start of the Worker. Another value means another
	// thing, a restarted container for instance: what was learnt of the old one is forgotten.
	Since time.Time
	// Known is what was known of the thing before the Worker, which begins with its State, Message and ChangedAt:
	// the state then changes only when answers have repeated often enough. The zero value is Unknown.
	Known Result
	// Admit, if set, is called before each probe and waits until it may run, or until ctx ends, which is the only error.
	// The timeout counts from then on. The function that it returns is called after the probe.
	Admit func(ctx context.Context) (done func(), err error)
	// Align, if set, says by how much a probe that is due at a time is delayed; the first is not. So that of many Workers
	// some ask at the same moment and not each at its own: waking up is much of what a probe costs.
	Align func(due time.Time) time.Duration
}

// Validate reports all faults at once.
func (s Spec) Validate() error {
	err := s.Timing.Validate()
	if s.Prober == nil {
		err = errors.Join(err, errors.New("no prober"))
	}
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	return nil
}
