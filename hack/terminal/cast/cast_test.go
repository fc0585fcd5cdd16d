package cast_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hack/terminal/cast"
)

func TestRecordingIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	r := &cast.Recording{Title: "a <b>", Columns: 80, Lines: 24, Events: []cast.Event{
		{At: 0, Text: "$ date\r\n"}, {At: 1500 * time.Millisecond, Text: "\x1b[31m\"é\"\x00\x1b[0m"},
	}}
	var text strings.Builder
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	const want = `{"version":2,"width":80,"height":24,"title":"a <b>"}
[0,"o","$ date\r\n"]
[1.5,"o","\u001b[31m\"é\"\u0000\u001b[0m"]
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	isReadAsItWasWritten(t, r)
}

func isReadAsItWasWritten(t *testing.T, r *cast.Recording) {
	t.Helper()
	var text strings.Builder
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	got, err := cast.Read(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsNoRecordingIsRefused(t *testing.T) {
	t.Parallel()
	const head = `{"version":2,"width":80,"height":24}` + "\n"
	for name, tt := range map[string]struct{ text, want string }{
		"nothing":         {"", "header"},
		"another version": {`{"version":3,"width":80,"height":24}`, "version 3"},
		"no size":         {`{"version":2,"width":80,"height":0}`, "size 80x0"},
		"too large":       {`{"version":2,"width":80000,"height":24}`, "size 80000x24"},
		"no event":        {head + `{}`, "event 1"},
		"two fields":      {head + `[1,"o"]`, "event 1"},
		"a negative time": {head + `[-1,"o",""]`, "event 1"},
		"a time too far":  {head + `[1e99,"o",""]`, "event 1"},
		"back in time":    {head + `[2,"o",""]` + "\n" + `[1,"o",""]`, "order"},
	} {
		if _, err := cast.Read(strings.NewReader(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
	r, err := cast.Read(strings.NewReader(head + `[0,"i","typed"]` + "\n" + `[1,"o","shown"]`))
	if err != nil || len(r.Events) != 1 || r.Events[0].Text != "shown" {
		t.Errorf("input is not left out: %+v, %v", r, err)
	}
}

// Commands have a terminal of the size of the recording, and what they write is recorded with its times.
func TestCommandsHaveATerminal(t *testing.T) {
	t.Parallel()
	r := cast.NewRecorder("", 80, 24, t.TempDir(), "WORD=wörd")
	began := time.Now()
	for _, line := range []string{`test -t 1 && stty size && pwd`, `printf "$WORD"; printf '\303' && sleep 0.3 && printf '\251\n'`} {
		if err := r.Run(t.Context(), line); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(began)
	var all strings.Builder
	last := time.Duration(0)
	for _, event := range r.Events {
		all.WriteString(event.Text)
		if event.At < last || event.At > took {
			t.Errorf("an event at %s after %s, of %s", event.At, last, took)
		}
		last = event.At
	}
	got := all.String()
	for _, words := range []string{"$\x1b[0m \x1b[1mtest -t 1", "24 80\r\n/", "wördé\r\n"} {
		if !strings.Contains(got, words) {
			t.Errorf("no %q in %q", words, got)
		}
	}
	if last < 300*time.Millisecond {
		t.Errorf("the last event is at %s", last)
	}
	isReadAsItWasWritten(t, &r.Recording)
}

func TestACommandThatFailsEndsTheRecordingWithItsWords(t *testing.T) {
	t.Parallel()
	r := cast.NewRecorder("", 80, 24, t.TempDir())
	if err := r.Run(t.Context(), `echo no such pod; exit 3`); err == nil || !strings.Contains(err.Error(), "exit status 3:\nno such pod") {
		t.Errorf("error %v", err)
	}
	missing := cast.NewRecorder("", 80, 24, filepath.Join(t.TempDir(), "missing"))
	if err := missing.Run(t.Context(), "true"); err == nil {
		t.Error("no error without the folder")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := r.Run(ctx, `trap "" HUP TERM; sleep 1000 & wait`); err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}
