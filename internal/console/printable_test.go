package console_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/refit-project/refit/internal/console"
)

// A message of a registry or of an object's status cannot move the cursor or clear the screen.
func TestTextOfOthersDoesNotControlTheTerminal(t *testing.T) {
	t.Parallel()
	const foreign = "pull: \x1b[2J\x1b]0;title\x07\r\u009b2Jno\u202e such image\xff"
	const shown = "pull: [2J]0;title2Jno such image"
	for name, say := range map[string]func(*console.Output){
		"Print":       func(o *console.Output) { o.Print("%s\n", foreign) },
		"Say":         func(o *console.Output) { o.Say("%s", foreign) },
		"Wait":        func(o *console.Output) { o.Wait("%s", foreign) },
		"Progress":    func(o *console.Output) { o.Progress(foreign) },
		"Tick":        func(o *console.Output) { o.Wait("%s", foreign); o.Tick() },
		"end of wait": func(o *console.Output) { o.Wait("%s\n", foreign); o.Say("done") },
		"Region":      func(o *console.Output) { o.Region([]string{console.Cut(foreign, 79)}) },
	} {
		for _, terminal := range []bool{false, true} {
			var out strings.Builder
			say(console.NewOutput(&out, terminal))
			own := strings.NewReplacer("\r\x1b[K", "", "\x1b[1A\r\x1b[J", "").Replace(out.String()) // without what the Output itself controls
			if strings.ContainsAny(own, "\x1b\a\r\u009b\u202e\ufffd") || !utf8.ValidString(own) || !strings.Contains(own, shown) && (terminal || name != "Region") {
				t.Errorf("%s, terminal %t: %q", name, terminal, own)
			}
		}
	}
	err := fmt.Errorf("%w\n  last:\t%s", errors.New("failed"), foreign)
	if got := console.Line(err); got != "error: failed\n  last:\t"+shown {
		t.Errorf("%q", got)
	}
}

// A line of the terminal that is updated in place stays one line.
func TestCutTextIsOneLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"a\n\tb": "a  b", "déjà\x1b[31m vu": "déjà[31…", "12345678": "12345678", "123456789": "1234567…"} {
		if got := console.Cut(text, 8); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
