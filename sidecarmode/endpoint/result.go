package endpoint

import (
	"time"

	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/result"
)

// Latest is the latest result of an endpoint, as /status shows it.
type Latest struct {
	State     probe.State `json:"state"`
	Message   string      `json:"message,omitempty"`
	ProbedAt  time.Time   `json:"probedAt"`
	ChangedAt time.Time   `json:"changedAt"`
}

// NewLatest is what is shown of a result.
func NewLatest(r probe.Result) Latest {
	return Latest{State: r.State, Message: r.Message, ProbedAt: r.ProbedAt, ChangedAt: r.ChangedAt}
}

// Entry is a result as it is stored: what was answered, or if nothing good was, the state.
func Entry(r probe.Result) result.Entry {
	entry := result.Entry{State: result.State(r.State), Value: r.Message, Message: r.Message, At: r.ProbedAt}
	if r.State != probe.Succeeded {
		entry.Value = string(r.State)
	}
	return entry
}
