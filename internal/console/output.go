package console

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/refit-project/refit/internal/foreign"
)

// Output prints one line for each thing that is done or waited for. On a terminal the line of the current wait is updated
// in place. It is cut to the width of the terminal until the wait ends, because a line that wraps cannot be replaced.
//
// Messages may have text of others, for example of an object's status. Control characters in them are dropped, except line breaks and
// tabs, so that they cannot change what the terminal shows.
type Output struct {
	to       io.Writer
	terminal bool
	began    time.Time

	mutex   sync.Mutex
	last    string // the current wait, or the last message
	since   time.Time
	pending bool   // the cursor is in the line of the current wait
	whole   string // that line, if only a part of it is shown
	// progress reports whether the last line was progress
	progress bool
	// region are the lines at the end of the terminal that are updated in place.
	region []string
}

// NewOutput returns an Output; terminal says whether it writes to a terminal.
func NewOutput(to io.Writer, terminal bool) *Output {
	return &Output{to: to, terminal: terminal, began: time.Now()}
}

const clearLine = "\r\x1b[K"

// Print writes text without the time before it.
func (o *Output) Print(format string, args ...any) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.end()
	fmt.Fprint(o.to, printable(format, args...))
	o.draw()
}

// Say prints what was done.
func (o *Output) Say(format string, args ...any) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.end()
	o.last = printable(format, args...)
	fmt.Fprintf(o.to, "%s %s\n", o.clock(), o.last)
	o.draw()
}

// printable returns a message without control characters.
func printable(format string, args ...any) string {
	return foreign.PrintableLines(fmt.Sprintf(format, args...))
}

// Wait prints what the command waits for, once.
func (o *Output) Wait(format string, args ...any) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	message := printable(format, args...)
	if message == o.last {
		return
	}
	o.end()
	o.last, o.since, o.pending = message, time.Now(), o.terminal
	o.show(message)
}

// progressInterval is the time between lines of progress without a terminal.
const progressInterval = 5 * time.Second

// Progress prints the progress of the current wait. On a terminal it replaces the previous line.
func (o *Output) Progress(progress string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	message := foreign.PrintableLines(progress)
	if message == o.last || !o.terminal && o.progress && time.Since(o.since) < progressInterval {
		return
	}
	if o.pending && o.progress {
		fmt.Fprint(o.to, clearLine)
		o.pending = false
	}
	o.end()
	o.last, o.since, o.pending, o.progress = message, time.Now(), o.terminal, true
	o.show(message)
}

// Tick updates the line of the current wait.
func (o *Output) Tick() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.pending {
		fmt.Fprint(o.to, clearLine)
		o.show(fmt.Sprintf("%s, for %.0f s", o.last, time.Since(o.since).Seconds()))
	}
}

// show prints the current wait: the whole line, or the part that can be replaced.
func (o *Output) show(message string) {
	line := o.clock() + " " + message
	if !o.terminal {
		fmt.Fprintln(o.to, line)
		return
	}
	columns, _ := o.Size()
	first, _, more := strings.Cut(line, "\n")
	shown := Cut(first, columns)
	if o.whole = ""; more || shown != line {
		o.whole = line
	}
	fmt.Fprint(o.to, shown)
}

func (o *Output) clock() string { return fmt.Sprintf("[%6.1fs]", time.Since(o.began).Seconds()) }

// Last returns what the command waits for, or its last message; empty if there is none.
func (o *Output) Last() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.last
}

// Terminal reports whether lines on the screen can be replaced.
func (o *Output) Terminal() bool { return o.terminal }

// Colour returns whether to colour: on terminals, unless the user has set NO_COLOR.
func (o *Output) Colour() Colour { return Colour(o.terminal && os.Getenv("NO_COLOR") == "") }

// Default size of a terminal that does not report its size.
const (
	usualColumns = 80
	usualLines   = 24
)

// Size returns how many columns of a line can be used without wrapping, and how many lines can be updated in place. Both
// are one less than the terminal has, because some terminals start a new line after the last column, and because the cursor
// is below the lines.
func (o *Output) Size() (columns, lines int) {
	columns, lines = usualColumns, usualLines
	if file, ok := o.to.(*os.File); ok {
		if c, l, err := term.GetSize(int(file.Fd())); err == nil && c > 1 && l > 1 {
			columns, lines = c, l
		}
	}
	return columns - 1, lines - 1
}

// Region updates lines at the end of a terminal in place: they replace the previous lines, and other messages are printed
// above them. They must not be longer than what Size returns. If there are too many, the last ones are shown. Without a
// terminal nothing is shown. Lines may have colours, so control characters are not dropped here: text of others is passed
// through Cut.
func (o *Output) Region(lines []string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.terminal {
		o.end()
		_, most := o.Size()
		o.region = lines[max(0, len(lines)-most):]
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

// end prepares the terminal for other output.
func (o *Output) end() {
	o.progress = false
	if len(o.region) > 0 {
		fmt.Fprintf(o.to, "\x1b[%dA\r\x1b[J", len(o.region)) // up, and clear to the end of the screen
	}
	if o.pending {
		if o.whole != "" {
			fmt.Fprint(o.to, clearLine+o.whole)
			o.whole = ""
		}
		fmt.Fprintln(o.to)
		o.pending = false
	}
}

// spaces replaces what ends a line, or takes several columns.
var spaces = strings.NewReplacer("\n", " ", "\t", " ")

// Cut returns the beginning of a text that fits into a number of columns, with an ellipsis for the rest. It is one line without
// control characters.
func Cut(text string, columns int) string {
	runes := []rune(foreign.Printable(spaces.Replace(text)))
	if len(runes) <= columns {
		return string(runes)
	}
	return string(runes[:max(columns-1, 0)]) + "…"
}
