package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/refit-project/refit/internal/guard"
)

// State is the state of a probe. The status of NodePodProbe has the same values.
type State string

// The states. The zero value is none of them. Before the first probe the state is Unknown.
const (
	Succeeded State = "Succeeded"
	Failed    State = "Failed"
	Unknown   State = "Unknown"
)

// ErrNotRun is wrapped by errors of an Execer that could not run the command for reasons that say nothing about the
// probed application, for example a container runtime that is restarting. Such an outcome does not count.
var ErrNotRun = errors.New("the probe could not run")

// Outcome is the result of running a probe once. An outcome without a State does not count.
type Outcome struct {
	State State
	// Message is the result on success, for example the trimmed body, and otherwise the reason. It is valid UTF-8 with
	// at most MaxMessage bytes.
	Message string
}

// Prober is one kind of probe. Probe returns soon after ctx is done; the deadline of ctx is the probe's timeout. It is
// called by one goroutine at a time. A Prober that keeps something open between probes implements io.Closer. A Worker
// closes its Prober at the end. Other callers of Probe must close it too, see Close.
type Prober interface {
	Probe(ctx context.Context) Outcome
}

// Close closes a Prober if it implements io.Closer.
func Close(p Prober) {
	if kept, ok := p.(io.Closer); ok {
		_ = kept.Close() // nothing is lost if an idle connection fails to close
	}
}

// Timing says when to probe and how often an outcome must repeat to count. It has the fields of corev1.Probe.
type Timing struct {
	// StartDelay is the time between Spec.Since and the first probe.
	StartDelay time.Duration
	// Period is the time from when one probe was due to when the next one is, or from the end of the probe, if that is
	// later.
	Period time.Duration
	// Timeout limits each probe. It may be longer than Period; probes never overlap.
	Timeout time.Duration
	// SuccessThreshold and FailureThreshold are how many equal outcomes in a row change the state. Unknown counts like
	// a failure.
	SuccessThreshold, FailureThreshold int
	// Jitter is the upper limit of a random delay of the first probe, so that probes that started together do not run
	// at the same times for ever.
	Jitter time.Duration
}

// WithDefaults replaces zero values by Kubernetes' defaults: a period of 10 s, a timeout of 1 s, thresholds of one
// success and three failures. The defaults of StartDelay and Jitter are zero.
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

// minPeriod prevents that a wrong unit causes a busy loop.
const minPeriod = 10 * time.Millisecond

// Validate returns all errors at once.
func (t Timing) Validate() error {
	var errs []error
	check := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(t.StartDelay < 0, "start delay %s: negative", t.StartDelay)
	check(t.Period < minPeriod, "period %s: below %s", t.Period, minPeriod)
	check(t.Timeout <= 0, "timeout %s: not positive", t.Timeout)
	check(t.SuccessThreshold < 1, "success threshold %d: below 1", t.SuccessThreshold)
	check(t.FailureThreshold < 1, "failure threshold %d: below 1", t.FailureThreshold)
	check(t.Jitter < 0, "jitter %s: negative", t.Jitter)
	return errors.Join(errs...)
}

// Spec configures a Worker.
type Spec struct {
	Prober Prober
	Timing
	// Since is when the probed application started; zero means when the Worker started. A changed value means another
	// instance, for example a restarted container: results of the old one are discarded.
	Since time.Time
	// Known is the result from before the Worker. The Worker starts with its State, Message and ChangedAt, so the state
	// only changes after enough equal outcomes. The zero value means Unknown.
	Known Result
	// Admit, if set, is called before each probe. It waits until the probe may run, or returns an error when ctx ends.
	// The timeout starts after it. The function that it returns is called after the probe.
	Admit func(ctx context.Context) (done func(), err error)
	// Align, if set, returns by how much a probe that is due at this time is delayed. The first probe is not aligned.
	// With it, probes of many Workers run at the same moment instead of each at its own: waking up is a large part of
	// the cost of a probe.
	Align func(due time.Time) time.Duration
	// Guard reports panics of the Prober, for Subject. Both may be nil.
	Guard   *guard.Guard
	Subject guard.Subject
}

// Validate returns all errors at once.
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
