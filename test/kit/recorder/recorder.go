// Package recorder reads what client-go's FakeRecorder has been sent: "TYPE REASON NOTE" of each Event.
package recorder

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"
)

// Next is the next recorded Event, empty if there is none.
func Next(recorder *events.FakeRecorder) string {
	select {
	case event := <-recorder.Events:
		return event
	default:
		return ""
	}
}

// Want checks that the Events recorded since are those that begin with these texts, in their order, and no others.
func Want(t *testing.T, recorder *events.FakeRecorder, want ...string) {
	t.Helper()
	for i, text := range want {
		if event := Next(recorder); event == "" || !strings.HasPrefix(event, text) {
			t.Errorf("Event %d: %q, want %q", i, event, text)
		}
	}
	for event := Next(recorder); event != ""; event = Next(recorder) {
		t.Errorf("one Event more: %q", event)
	}
}
