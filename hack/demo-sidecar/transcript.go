package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// story tells what happens, and how long after the beginning of its chapter.
type story struct {
	out   io.Writer
	now   func() time.Time
	began time.Time
}

func newStory(out io.Writer, title string) *story {
	fmt.Fprintf(out, "\n%s\n", title)
	s := &story{out: out, now: time.Now}
	s.begin()
	return s
}

// begin sets the clock to zero.
func (s *story) begin() { s.began = s.now() }

func (s *story) tell(format string, args ...any) {
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	fmt.Fprintf(s.out, "  %9.1f ms   %s\n", float64(s.now().Sub(s.began).Microseconds())/1000, strings.ReplaceAll(text, "\n", "\n                 "))
}
