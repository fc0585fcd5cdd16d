// Package svg draws when instances of containers ran, as an SVG picture. Where the times come from must stay out.
package svg

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"time"
)

// Picture is one or more panels on one time axis.
type Picture struct {
	Title  string
	Panels []Panel
}

// Panel is one recording. Its times are since the left end of the axis.
type Panel struct {
	Title, Note string
	Bars        []Bar // in the order of their lanes
	Marks       []Mark
}

// State is the state of the instance of a bar.
type State string

// States of a bar.
const (
	// StateBefore is an instance that was already running at the left end of the axis.
	StateBefore State = "before"
	// StateStopping is an instance that is being stopped. It is not known when it has ended.
	StateStopping State = "stopping"
	// StateAfter is an instance that was started later.
	StateAfter State = "after"
)

// Bar is one instance of a container, from Start to End; to the right end of the axis if End is zero.
type Bar struct {
	Lane, Label string
	State       State
	Start, End  time.Duration
}

// Mark is a marked moment.
type Mark struct {
	At    time.Duration
	Label string
}

//go:embed picture.svg.tmpl
var source string

var picture = template.Must(template.New("picture").Parse(source))

const (
	width      = 860
	right      = 40
	laneHeight = 26
	letter     = 7   // approximate width of one
	shortest   = 118 // minimum space for the names of the lanes
	margin     = 300 * time.Millisecond
	longest    = math.MaxInt64 / 2 * time.Nanosecond // so that no sum of times overflows: others can write any time into Events
)

// drawn is a panel in pixels.
type drawn struct {
	Y, Bottom   int
	Title, Note string
	Lanes       []lane
	Bars        []rectangle
	Marks       []line
}

type lane struct {
	Y    int
	Name string
}

type rectangle struct {
	X, Width, Y int
	Colour      string
	Label       string
}

type line struct {
	X     int
	Label string
}

// Draw writes the picture.
func Draw(out io.Writer, p Picture) error {
	end, left := min(p.length(), longest)+margin, p.left()
	scale := func(d time.Duration) int {
		return left + int(float64(width-left-right)*max(float64(d), 0)/float64(end))
	}
	y := 44
	panels := make([]drawn, len(p.Panels))
	for i, panel := range p.Panels {
		panels[i] = panel.place(y, scale, end)
		y = panels[i].Bottom + 44
	}
	bottom := panels[len(panels)-1].Bottom
	var ticks []line
	for at := time.Duration(0); at < end; at += tickInterval(end) {
		ticks = append(ticks, line{scale(at), fmt.Sprintf("%g s", at.Seconds())})
	}
	err := picture.Execute(out, map[string]any{
		"Title": p.Title, "Width": width, "Height": bottom + 54, "Names": left - 20, "Panels": panels, "Ticks": ticks, "Axis": bottom + 20,
	})
	if err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	return nil
}

// length returns the time from the left end of the axis to the last change.
func (p Picture) length() (length time.Duration) {
	for _, panel := range p.Panels {
		for _, b := range panel.Bars {
			length = max(length, b.Start, b.End)
		}
		for _, m := range panel.Marks {
			length = max(length, m.At)
		}
	}
	return length
}

// left returns where the axis begins, to the right of the names of the lanes.
func (p Picture) left() int {
	space := shortest
	for _, panel := range p.Panels {
		for _, b := range panel.Bars {
			space = max(space, min(letter*len(b.Lane), width/3))
		}
	}
	return space + 32
}

func tickInterval(length time.Duration) time.Duration {
	interval := 200 * time.Millisecond
	for _, next := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute} {
		if length/interval <= 12 {
			return interval
		}
		interval = next
	}
	for length/interval > 12 {
		interval *= 2
	}
	return interval
}

var colours = map[State]string{StateBefore: "#7b8794", StateStopping: "#dd9a3c", StateAfter: "#2f855a"}

// place places a panel from y down. An instance that is still running is drawn to the end of the axis.
func (p Panel) place(y int, scale func(time.Duration) int, axis time.Duration) drawn {
	d := drawn{Y: y, Title: p.Title, Note: p.Note}
	for _, b := range p.Bars {
		if len(d.Lanes) == 0 || d.Lanes[len(d.Lanes)-1].Name != b.Lane {
			d.Lanes = append(d.Lanes, lane{Y: y + 10 + len(d.Lanes)*laneHeight, Name: b.Lane})
		}
		end := b.End
		if end == 0 {
			end = axis
		}
		d.Bars = append(d.Bars, rectangle{
			X: scale(b.Start), Width: max(scale(end)-scale(b.Start), 1), Y: d.Lanes[len(d.Lanes)-1].Y, Colour: colours[b.State], Label: b.Label,
		})
	}
	for _, m := range p.Marks {
		d.Marks = append(d.Marks, line{scale(m.At), m.Label})
	}
	d.Bottom = y + 10 + len(d.Lanes)*laneHeight
	return d
}
