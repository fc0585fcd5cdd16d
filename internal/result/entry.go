package result

import "time"

// State is the outcome in one word, as in the status of a NodePodProbe.
type State string

// States of an Entry.
const (
	Succeeded State = "Succeeded"
	Failed    State = "Failed"
	Unknown   State = "Unknown"
)

// Entry is one outcome.
type Entry struct {
	State State
	// Value is written to labels, annotations, fields and gauges, within their limits, and is compared with the states of
	// marker policies.
	Value string
	// Message is written to conditions and Events.
	Message string
	// At is the time of the outcome. It is written together with a change; a different time alone is no change.
	At time.Time
}

// Same reports whether state, value and message are equal.
func (a Entry) Same(b Entry) bool {
	return a.State == b.State && a.Value == b.Value && a.Message == b.Message
}
