package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// Output prints what happens: a line for each thing that is done or waited for. On a terminal the line about what is
// waited for is kept up to date.
type Output struct {
	to       io.Writer
	terminal bool
	began    time.Time

	mutex   sync.Mutex
	last    string // what is waited for, or was said last
	since   time.Time
	pending bool // the cursor is in the line of what is waited for
	// progress is whether the last line was one of progress
	progress bool
	// region are the lines at the end of the terminal that are kept up to date.
	region []string
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
	o.draw()
}

// Say prints what was done.
func (o *Output) Say(format string, args ...any) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.end()
	o.last = fmt.Sprintf(format, args...)
	fmt.Fprintf(o.to, "%s %s\n", o.clock(), o.last)
	o.draw()
}

// Wait prints what is waited for, once.
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

// Progress prints the progress of what is waited for. On a terminal it replaces the line before.
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

// Last is what is waited for, or was said last; empty if nothing was.
func (o *Output) Last() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.last
}

// Terminal says whether lines on the screen can be replaced.
func (o *Output) Terminal() bool { return o.terminal }

// Colour is for terminals, unless the user wants none (NO_COLOR).
func (o *Output) Colour() Colour { return Colour(o.terminal && os.Getenv("NO_COLOR") == "") }

// Region keeps lines at the end of a terminal up to date: they replace those that it has shown before, and what is said by
// other means comes above them. Where there is no terminal nothing is shown.
func (o *Output) Region(lines []string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.terminal {
		o.end()
		o.region = lines
		o.draw()
	}
}

// EndRegion leaves the lines of the region as they are.
func (o *Output) EndRegion() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.region = nil
}

func (o *Output) draw() {
	if len(o.region) > 0 {
		fmt.Fprintln(o.to, strings.Join(o.region, "\n"))
	}
}

// end makes place for what is written next.
func (o *Output) end() {
	o.progress = false
	if len(o.region) > 0 {
		fmt.Fprintf(o.to, "\x1b[%dA\r\x1b[J", len(o.region)) // up, and clear to the end of the screen
	}
	if o.pending {
		fmt.Fprintln(o.to)
		o.pending = false
	}
}
