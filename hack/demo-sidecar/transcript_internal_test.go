package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTranscriptPrintsTheTimeSinceItsBeginning(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	transcript := newTranscript(&out, "An update")
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	transcript.now = func() time.Time { return at }
	transcript.begin()
	transcript.print("sent")
	at = at.Add(1234567 * time.Microsecond)
	transcript.print("answered %d: %s", 500, "line one\nline two\n")
	want := `
An update
        0.0 ms   sent
     1234.6 ms   answered 500: line one
                 line two
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("transcript (-want +got):\n%s", diff)
	}
}
