package probe

import "time"

// Result is what a Worker knows after a probe.
type Result struct {
	State   State
	Message string
	// ProbedAt is when the last probe started and ChangedAt when State last changed. Both are zero before.
	ProbedAt, ChangedAt time.Time
	// Late is how long after its time the last probe started.
	Late time.Duration
}

// tracker applies thresholds. An answer that has not repeated often enough changes neither state nor message.
type tracker struct {
	result Result
	last   State // of the last answer
	run    int   // how many such answers in a row
}

// knowing begins with what is known already.
func knowing(known Result) tracker {
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
