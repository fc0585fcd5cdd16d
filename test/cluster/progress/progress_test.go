package progress_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/test/cluster/progress"
)

func TestTimesAreCountedFromTheStartOfTheProgramAround(t *testing.T) {
	for name, test := range map[string]struct{ started, want string }{
		"a demo that began before": {started: time.Now().Add(-time.Minute).Format(time.RFC3339Nano), want: "[  60."},
		"by itself":                {want: "[   0."},
		"not a time":               {started: "yesterday", want: "[   0."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PROGRESS_START", test.started)
			var out bytes.Buffer
			progress.New(&out).Say("line")
			if !strings.HasPrefix(out.String(), test.want) {
				t.Errorf("printed %q, want %q first", out.String(), test.want)
			}
		})
	}
}
