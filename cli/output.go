package cli

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Output tells a user what happens: a line for each thing that is done or waited for. On a terminal the line about what is
// waited for is kept up to date.
type Output struct {
	to       io.Writer
	terminal bool
	began    time.Time

	mutex   sync.Mutex
	last    string // what is waited for, or was said last
	since   time.Time
	pending bool // the cursor is in the line of what is waited for
	// progress is whether the last line told of progress
	progress bool
}

// NewOutput writes to a terminal or not.
func NewOutput(to io.Writer, terminal bool) *Output {
	return &Output{to: to, terminal: terminal, began: time.Now()}
}

const clearLine = "\r\x1b[K"

// Print writes text as it is.
func (o *Output) Print(format string, args ...any) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.end()
	fmt.Fprintf(o.to, format, args...)
}

// Say tells of something that was done.
func (o *Output) Say(format string, args ...any) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.end()
	o.last = fmt.Sprintf(format, args...)
	fmt.Fprintf(o.to, "%s %s\n", o.clock(), o.last)
}

// Wait tells what is waited for, once.
func (o *Output) Wait(format string, args ...any) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	text := fmt.Sprintf(format, args...)
	if text == o.last {
		return
	}
	o.end()
	o.last, o.since, o.pending = text, time.Now(), o.terminal
	fmt.Fprintf(o.to, "%s %s", o.clock(), text)
	if !o.terminal {
		fmt.Fprintln(o.to)
	}
}

// progressInterval is between lines of progress where there is no terminal.
const progressInterval = 5 * time.Second

// Progress tells how far something is that is waited for. On a terminal it replaces what was told before.
func (o *Output) Progress(text string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if text == o.last || !o.terminal && o.progress && time.Since(o.since) < progressInterval {
		return
	}
	if o.pending && o.progress {
		fmt.Fprint(o.to, clearLine)
		o.pending = false
	}
	o.end()
	o.last, o.since, o.pending, o.progress = text, time.Now(), o.terminal, true
	fmt.Fprintf(o.to, "%s %s", o.clock(), text)
	if !o.terminal {
		fmt.Fprintln(o.to)
	}
}

// Tick brings the line of what is waited for up to date.
func (o *Output) Tick() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.pending {
		fmt.Fprintf(o.to, "%s%s %s, for %.0f s", clearLine, o.clock(), o.last, time.Since(o.since).Seconds())
	}
}

func (o *Output) clock() string { return fmt.Sprintf("[%6.1fs]", time.Since(o.began).Seconds()) }

func (o *Output) end() {
	o.progress = false
	if o.pending {
		fmt.Fprintln(o.to)
		o.pending = false
	}
}
