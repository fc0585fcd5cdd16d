// Package film draws a recorded terminal as an animated SVG without scripts.
package film

import (
	"slices"
	"time"

	"github.com/refit-project/refit/hack/terminal/cast"
	"github.com/refit-project/refit/test/kit/screen"
)

const (
	// MaxIdle is the longest time for which nothing changes.
	MaxIdle = time.Second
	// minFrame is how long a frame is shown at least: a table that is drawn again is written in several parts.
	minFrame = 40 * time.Millisecond
)

// frame is what the terminal shows from a time on.
type frame struct {
	at    time.Duration
	top   int             // how many lines have left the screen
	lines [][]screen.Span // also of those that have left it
}

// frames are the different states of the terminal, with the idle time cut.
func frames(r *cast.Recording) (shown []frame) {
	terminal := screen.New(r.Columns, r.Lines)
	var began, last, cut time.Duration
	first := true // of the events of a frame
	for i, event := range r.Events {
		if terminal.WriteString(event.Text); first {
			began = event.At
		}
		if first = i+1 == len(r.Events) || r.Events[i+1].At-began >= minFrame; !first {
			continue
		}
		now := frame{top: terminal.Top(), lines: terminal.Styled()}
		if len(shown) > 0 && now.same(shown[len(shown)-1]) {
			continue
		}
		if len(shown) == 0 {
			cut = began
		} else {
			cut += max(began-last-MaxIdle, 0)
		}
		last, now.at = began, began-cut
		shown = append(shown, now)
	}
	return shown
}

func (f frame) same(as frame) bool {
	return f.top == as.top && slices.EqualFunc(f.lines, as.lines, slices.Equal)
}

// piece is a line as it looks from one frame to another. Lines are counted from the first one that was written.
type piece struct {
	line     int
	spans    []screen.Span
	from, to int // to is the first frame without it
}

// pieces returns what all frames together show, each piece once. Lines that have left the screen stay: the screen is moved.
func pieces(of []frame) (all []piece) {
	var open []piece // by lines
	for n, f := range of {
		for len(open) < len(f.lines) {
			open = append(open, piece{line: len(open)})
		}
		for i, now := range f.lines {
			if slices.Equal(now, open[i].spans) {
				continue
			}
			all = append(all, open[i].ended(n)...)
			open[i].from, open[i].spans = n, now
		}
	}
	for _, p := range open {
		all = append(all, p.ended(len(of))...)
	}
	slices.SortStableFunc(all, func(a, b piece) int { return a.line - b.line })
	return all
}

// ended returns the piece, if there is anything to see of it.
func (p piece) ended(at int) []piece {
	if len(p.spans) == 0 {
		return nil
	}
	p.to = at
	return []piece{p}
}
