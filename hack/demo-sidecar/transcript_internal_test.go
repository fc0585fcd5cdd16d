package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStory(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	told := newStory(&out, "An update")
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	told.now = func() time.Time { return at }
	told.begin()
	told.tell("sent")
	at = at.Add(1234567 * time.Microsecond)
	told.tell("answered %d: %s", 500, "line one\nline two\n")
	want := `
An update
        0.0 ms   sent
     1234.6 ms   answered 500: line one
                 line two
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}
}
