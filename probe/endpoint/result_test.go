package endpoint_test

import (
	"testing"

	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/probe/endpoint"
)

// The value of a probe that has an answer is its message; of any other it is the state, and never the text of an error.
func TestOnlyASuccessfulProbeWritesItsMessage(t *testing.T) {
	t.Parallel()
	for state, want := range map[probe.State]string{probe.Succeeded: "text", probe.Failed: "Failed", probe.Unknown: "Unknown"} {
		entry := endpoint.Entry(probe.Result{State: state, Message: "text"})
		if entry.Value != want || entry.Message != "text" {
			t.Errorf("%s: value %q, message %q", state, entry.Value, entry.Message)
		}
	}
}
