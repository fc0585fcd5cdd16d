package probe

import "time"

// Result is the state of a Worker after a probe.
type Result struct {
	State   State
	Message string
	// ProbedAt is when the last probe started, and ChangedAt when State last changed. Both are zero before that.
	ProbedAt, ChangedAt time.Time
	// Late is how much later than due the last probe started.
	Late time.Duration
}

// tracker applies thresholds. An outcome that has not repeated often enough changes neither state nor message.
type tracker struct {
	result Result
	last   State // of the last outcome
	run    int   // number of equal outcomes in a row
}

// newTracker returns a tracker that starts with a known result.
func newTracker(known Result) tracker {
	if known.State == "" {
		known.State = Unknown
	}
	known.ProbedAt, known.Late = time.Time{}, 0
	return tracker{result: known}
}

func (t *tracker) observe(o Outcome, timing Timing, probed, now time.Time) Result {
	if o.State != t.last {
		t.last, t.run = o.State, 0
	}
	t.run++
	t.result.ProbedAt = probed
	need := timing.FailureThreshold
	if o.State == Succeeded {
		need = timing.SuccessThreshold
	}
	if t.run < need {
		return t.result
	}
	if t.result.State != o.State {
		t.result.State, t.result.ChangedAt = o.State, now
	}
	t.result.Message = o.Message
	return t.result
}
