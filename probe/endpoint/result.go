package endpoint

import (
	"time"

	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/probe"
)

// Latest is the latest result of an endpoint, as shown by /status.
type Latest struct {
	State     probe.State `json:"state"`
	Message   string      `json:"message,omitempty"`
	ProbedAt  time.Time   `json:"probedAt"`
	ChangedAt time.Time   `json:"changedAt"`
}

// NewLatest returns the part of a result that /status shows.
func NewLatest(r probe.Result) Latest {
	return Latest{State: r.State, Message: r.Message, ProbedAt: r.ProbedAt, ChangedAt: r.ChangedAt}
}

// Entry returns a result as it is stored: the message of a successful probe, or otherwise the state.
func Entry(r probe.Result) result.Entry {
	entry := result.Entry{State: result.State(r.State), Value: r.Message, Message: r.Message, At: r.ProbedAt}
	if r.State != probe.Succeeded {
		entry.Value = string(r.State)
	}
	return entry
}
