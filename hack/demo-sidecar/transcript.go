package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// transcript prints what happens, with the time since the beginning of its section.
type transcript struct {
	out   io.Writer
	now   func() time.Time
	began time.Time
}

func newTranscript(out io.Writer, title string) *transcript {
	fmt.Fprintf(out, "\n%s\n", title)
	s := &transcript{out: out, now: time.Now}
	s.begin()
	return s
}

// begin sets the clock to zero.
func (t *transcript) begin() { t.began = t.now() }

func (t *transcript) print(format string, args ...any) {
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	fmt.Fprintf(t.out, "  %9.1f ms   %s\n", float64(t.now().Sub(t.began).Microseconds())/1000, strings.ReplaceAll(text, "\n", "\n                 "))
}
