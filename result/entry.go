package result

import "time"

// State is how the thing asked about is; the words are those of NodePodProbe's status.
type State string

// The states.
const (
	Succeeded State = "Succeeded"
	Failed    State = "Failed"
	Unknown   State = "Unknown"
)

// Entry is one outcome.
type Entry struct {
	State State
	// Value goes to labels, annotations, fields and gauges as it is, within their limits, and is what the
	// states of marker policies are compared with.
	Value string
	// Message goes to conditions and Events.
	Message string
	// At is when the outcome was had; it is written with a change but is none by itself.
	At time.Time
}

// same reports whether b says nothing that a does not.
func (a Entry) same(b Entry) bool {
	return a.State == b.State && a.Value == b.Value && a.Message == b.Message
}
