package board

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/refit-project/refit/internal/console"
)

// shownRows limits the table on a terminal. Unfinished rows are shown first, then the rows that ended last.
const shownRows = 15

// Lines returns the table for a terminal, as lines no longer than columns. It returns at most most lines; the last one
// says how many rows are left out.
func (b *Board) Lines(colour console.Colour, columns, most int) []string {
	const header = 1
	rows := slices.Clone(b.rows)
	fit := min(most-header, shownRows)
	left := ""
	if len(rows) > fit {
		fit = min(most-header-1, shownRows)
		left = fmt.Sprintf("... and %d more", len(rows)-max(fit, 0))
	}
	slices.SortStableFunc(rows, func(x, y *row) int {
		return cmp.Or(order(x)-order(y), y.seen.Compare(x.seen))
	})
	rows = rows[:max(min(len(rows), fit), 0)]
	slices.SortStableFunc(rows, func(x, y *row) int {
		return cmp.Or(strings.Compare(x.pod, y.pod), strings.Compare(x.container, y.container))
	})
	table := layout(rows, columns)
	lines := []string{line(table, columns, column.header, "STATE", unpainted)}
	for _, r := range rows {
		lines = append(lines, line(table, columns, func(c column) string { return c.of(r) }, r.state, r.painter(colour)))
	}
	if left != "" {
		lines = append(lines, console.Cut(left, columns))
	}
	return lines
}

func order(r *row) int {
	switch {
	case r.failed:
		return 0
	case !r.ended:
		return 1
	}
	return 2
}

// painter returns the function that colours the state of a row.
func (r *row) painter(colour console.Colour) func(string) string {
	switch {
	case r.failed:
		return colour.Red
	case r.ended:
		return colour.Green
	}
	return colour.Yellow
}

func unpainted(text string) string { return text }

// column is a column of the table. Its initial width allows for later values of its cells, so that the layout does not
// change while they are filled.
type column struct {
	name  string
	width int
	cell  func(*row) string
	left  bool // cut the beginning of a long cell and not the end, because names of pods differ at their ends
}

func (c column) header() string { return c.name }

func (c column) of(r *row) string {
	cell := c.cell(r)
	if long := utf8.RuneCountInString(cell) - c.width; long > 0 && c.left {
		runes := []rune(cell)
		cell = "…" + string(runes[long+1:])
	}
	return console.Cut(cell, c.width)
}

// The names of columns, and the minimum widths of names of pods and containers.
const (
	columnPod, leastPod             = "POD", 16
	columnContainer, leastContainer = "CONTAINER", 9
	columnOld, columnNew            = "OLD", "NEW"
	columnTerm, columnStart         = "TERM", "START"

	idDigits  = 12 // of a container ID, see ShortID
	timeWidth = 6  // for 123.4s
	gap       = 2
	// stateWidth fits the usual states. Longer states of failures are printed in full above the table.
	stateWidth = 10
)

// layout chooses the columns for a width, without the last column STATE. If the width is too small, it leaves out the
// least important columns, and cuts names.
func layout(rows []*row, width int) []column {
	table := []column{
		{columnPod, 0, func(r *row) string { return r.pod }, true},
		{columnContainer, 0, func(r *row) string { return r.container }, false},
		{columnOld, idDigits, func(r *row) string { return digits(r.old) }, false},
		{columnNew, idDigits, func(r *row) string { return digits(r.new) }, false},
		{columnTerm, timeWidth, func(r *row) string { return seconds(r.term) }, false},
		{columnStart, timeWidth, func(r *row) string { return seconds(r.start) }, false},
		{"READY", timeWidth, func(r *row) string { return seconds(r.ready) }, false},
	}
	for i := range table {
		c := &table[i]
		c.width = max(c.width, len(c.name))
		for _, r := range rows {
			c.width = max(c.width, utf8.RuneCountInString(c.cell(r)))
		}
	}
	table = without(table, width, columnOld, columnNew)
	narrow(table, width, columnPod, leastPod)
	table = without(table, width, columnTerm, columnStart)
	narrow(table, width, columnContainer, leastContainer)
	return table
}

// over returns by how many characters the table with the usual states is too wide.
func over(table []column, width int) int {
	all := stateWidth
	for _, c := range table {
		all += c.width + gap
	}
	return all - width
}

// without leaves out columns if the table is too wide.
func without(table []column, width int, names ...string) []column {
	if over(table, width) <= 0 {
		return table
	}
	return slices.DeleteFunc(table, func(c column) bool { return slices.Contains(names, c.name) })
}

// narrow makes a column narrower if the table is too wide, as much as needed, but not below a minimum width.
func narrow(table []column, width int, name string, least int) {
	long := max(over(table, width), 0)
	for i := range table {
		if c := &table[i]; c.name == name {
			c.width = max(c.width-long, min(c.width, least))
		}
	}
}

// line returns one line of the table: the padded cells, and the state, which is cut to the rest of the width.
func line(table []column, width int, cell func(column) string, state string, paint func(string) string) string {
	var text strings.Builder
	for _, c := range table {
		fmt.Fprintf(&text, "%-*s", c.width+gap, cell(c))
	}
	cells := text.String()
	if left := width - utf8.RuneCountInString(cells); left > 0 {
		return cells + paint(console.Cut(state, left))
	}
	return console.Cut(cells, width)
}
