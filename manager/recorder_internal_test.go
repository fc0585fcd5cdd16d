package manager

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/client-go/tools/events"
)

// The API server refuses Events with longer notes.
func TestNotesOfEventsAreBounded(t *testing.T) {
	t.Parallel()
	sent := events.NewFakeRecorder(1)
	boundedRecorder{sent}.Eventf(nil, nil, "Warning", "Refused", "Restart", "pod %s: 100%%", strings.Repeat("é", 100_000))
	note := strings.TrimPrefix(<-sent.Events, "Warning Refused ")
	if len(note) > 1024 || !utf8.ValidString(note) || !strings.HasPrefix(note, "pod éé") || !strings.HasSuffix(note, "é…") {
		t.Errorf("%d bytes: %s", len(note), note)
	}
}
