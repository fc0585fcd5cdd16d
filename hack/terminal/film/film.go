package film

import (
	_ "embed"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/refit-project/refit/hack/terminal/cast"
	"github.com/refit-project/refit/test/kit/screen"
)

// Pixels.
const (
	fontSize    = 14
	columnWidth = 8.5 // in the widest of the fonts
	lineHeight  = 18
	baseline    = 14 // of a line, below its top
	margin      = 16
)

// endPause is how long the last frame is shown before the first one follows again.
const endPause = 6 * time.Second

// palette are the colours of a terminal. Each is legible on the background.
type palette struct{ background, border, text, red, green, yellow string }

var (
	light = palette{background: "#ffffff", border: "#d0d7de", text: "#1f2328", red: "#cf222e", green: "#116329", yellow: "#7d4e00"}
	dark  = palette{background: "#0d1117", border: "#30363d", text: "#e6edf3", red: "#ff7b72", green: "#3fb950", yellow: "#d29922"}
)

// rules are the palette in CSS.
func (p palette) rules() string {
	return fmt.Sprintf(".screen{fill:%s;stroke:%s}\ntext{fill:%s}\n.red{fill:%s}\n.green{fill:%s}\n.yellow{fill:%s}\n",
		p.background, p.border, p.text, p.red, p.green, p.yellow)
}

// colours are the classes of SGR codes, of those that our programs use. Text of other colours has the colour of the terminal.
var colours = map[int]string{31: "red", 32: "green", 33: "yellow"}

func class(of screen.Span) string {
	var classes []string
	if colour := colours[of.Colour]; colour != "" {
		classes = append(classes, colour)
	}
	if of.Bold {
		classes = append(classes, "b")
	}
	return strings.Join(classes, " ")
}

// escape returns a text for XML. Characters that XML cannot have are replaced.
func escape(text string) (string, error) {
	var escaped strings.Builder
	err := xml.EscapeText(&escaped, []byte(text))
	return escaped.String(), err
}

//go:embed film.svg.tmpl
var text string

var film = template.Must(template.New("film").Funcs(template.FuncMap{"text": escape, "class": class, "colours": palette.rules}).Parse(text))

type size struct{ Width, Height int }

// step is the beginning of what is shown from a part of the film's duration on.
type step struct {
	Percent  string
	Visible  bool
	Scrolled int // pixels
}

type animation struct {
	Name  string
	Steps []step
}

type line struct {
	Y     int
	Class string
	Spans []screen.Span
}

type drawing struct {
	size
	Title, Description string
	FontSize, Margin   int
	Frame, Inner       size
	Light, Dark        palette
	Seconds            string
	Animations         []animation
	Scrolls            []step
	Scrolled           int
	Lines              []line

	frames []frame
	length time.Duration
	names  map[[2]int]string // of animations, by their first and last frame
}

// Draw writes a recording as SVG, which repeats for ever. Where motion is not wanted, or not possible, it shows the last frame.
func Draw(to io.Writer, of *cast.Recording) error {
	all := frames(of)
	if len(all) == 0 {
		return errors.New("the recording is empty")
	}
	inner := size{int(columnWidth * float64(of.Columns)), lineHeight * of.Lines}
	d := drawing{
		size: size{inner.Width + 2*margin, inner.Height + 2*margin}, Inner: inner,
		Title: of.Title, FontSize: fontSize, Margin: margin, Light: light, Dark: dark,
		frames: all, names: map[[2]int]string{},
	}
	d.Frame = size{d.Width - 1, d.Height - 1}
	d.length = all[len(all)-1].at + endPause
	d.Seconds = decimal(d.length.Seconds())
	d.Description = d.describe(of)
	d.scroll()
	for _, p := range pieces(d.frames) {
		d.Lines = append(d.Lines, line{Y: p.line*lineHeight + baseline, Class: d.animate(p), Spans: p.spans})
	}
	return film.Execute(to, d)
}

// describe says what is recorded, for a screen reader.
func (d *drawing) describe(of *cast.Recording) string {
	var commands []string
	for _, line := range d.frames[len(d.frames)-1].lines {
		if command, ok := strings.CutPrefix(plain(line), cast.PlainPrompt); ok {
			commands = append(commands, command)
		}
	}
	return fmt.Sprintf("A recorded terminal of %d columns and %d lines. Its commands: %s.", of.Columns, of.Lines, strings.Join(commands, "; "))
}

func plain(line []screen.Span) (words string) {
	for _, span := range line {
		words += span.Text
	}
	return words
}

// animate returns the classes of a piece, and adds its animation unless there is one of the same times.
func (d *drawing) animate(p piece) string {
	last := p.to == len(d.frames)
	if p.from == 0 && last {
		return ""
	}
	base := "h"
	if last {
		base = "w"
	}
	name, ok := d.names[[2]int{p.from, p.to}]
	if !ok {
		name = "a" + strconv.Itoa(len(d.names))
		d.names[[2]int{p.from, p.to}] = name
		a := animation{Name: name}
		if p.from > 0 {
			a.Steps = append(a.Steps, step{Percent: "0"})
		}
		a.Steps = append(a.Steps, step{Percent: d.percent(p.from), Visible: true})
		if !last {
			a.Steps = append(a.Steps, step{Percent: d.percent(p.to)})
		}
		d.Animations = append(d.Animations, a)
	}
	return base + " " + name
}

// scroll moves the lines up as the terminal did.
func (d *drawing) scroll() {
	for n, f := range d.frames {
		if n == 0 || f.top != d.frames[n-1].top {
			d.Scrolled = f.top * lineHeight
			d.Scrolls = append(d.Scrolls, step{Percent: d.percent(n), Scrolled: d.Scrolled})
		}
	}
}

// percent is when a frame begins.
func (d *drawing) percent(frame int) string {
	return decimal(100 * d.frames[frame].at.Seconds() / d.length.Seconds())
}

// decimal has at most three decimals.
func decimal(value float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(value, 'f', 3, 64), "0"), ".")
}
