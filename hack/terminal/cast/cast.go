// Package cast records what commands write to a terminal, with times, and reads and writes recordings as asciicast, version 2. What a
// terminal shows of it must stay out.
package cast

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
	"unicode/utf8"
)

// Recording is what was written to a terminal of a number of columns and lines.
type Recording struct {
	Title          string
	Columns, Lines int
	Events         []Event
}

// Event is text that was written at once. It ends between characters.
type Event struct {
	At   time.Duration // since the beginning, a multiple of Precision
	Text string
}

// Precision of the times, so that a recording is the same after it was written and read.
const Precision = time.Millisecond

// https://docs.asciinema.org/manual/asciicast/v2/
const (
	version     = 2
	kindOutput  = "o"
	maxLine     = 1 << 20
	maxSize     = 1000 // columns or lines
	maxDuration = 24 * time.Hour
)

type header struct {
	Version int    `json:"version"`
	Width   int    `json:"width"`
	Height  int    `json:"height"`
	Title   string `json:"title,omitempty"`
}

// Write writes a recording as asciicast.
func (r *Recording) Write(to io.Writer) error {
	lines := []any{header{Version: version, Width: r.Columns, Height: r.Lines, Title: r.Title}}
	for _, event := range r.Events {
		lines = append(lines, []any{float64(event.At/Precision) / 1000, kindOutput, event.Text})
	}
	for _, line := range lines {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(line); err != nil {
			return fmt.Errorf("write recording: %w", err)
		}
		if _, err := to.Write(text.Bytes()); err != nil {
			return fmt.Errorf("write recording: %w", err)
		}
	}
	return nil
}

// Read reads an asciicast. Events of other kinds than output are left out.
func Read(from io.Reader) (*Recording, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	lines.Scan()
	var head header
	if err := json.Unmarshal(lines.Bytes(), &head); err != nil {
		return nil, errors.Join(fmt.Errorf("read header of a recording: %w", err), lines.Err())
	}
	if head.Version != version || min(head.Width, head.Height) < 1 || max(head.Width, head.Height) > maxSize {
		return nil, fmt.Errorf("version %d and size %dx%d of a recording: want version %d and at most %dx%d", head.Version, head.Width, head.Height, version, maxSize, maxSize)
	}
	r := &Recording{Title: head.Title, Columns: head.Width, Lines: head.Height}
	for lines.Scan() {
		event, kind, err := readEvent(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("read event %d of a recording: %w", len(r.Events)+1, err)
		}
		if kind == kindOutput {
			r.Events = append(r.Events, event)
		}
	}
	if !slices.IsSortedFunc(r.Events, func(a, b Event) int { return int(a.At - b.At) }) {
		return nil, errors.New("the events of a recording are not in the order of their times")
	}
	return r, lines.Err()
}

func readEvent(line []byte) (event Event, kind string, err error) {
	var seconds float64
	fields := []any{&seconds, &kind, &event.Text}
	if err := json.Unmarshal(line, &fields); err != nil {
		return Event{}, "", err
	}
	if len(fields) != 3 || seconds < 0 || seconds > maxDuration.Seconds() {
		return Event{}, "", fmt.Errorf("no event of three fields, of the first day: %.100s", line)
	}
	event.At = time.Duration(math.Round(seconds*1000)) * Precision
	return event, kind, nil
}

// whole returns the part of a text that ends between characters, and the rest.
func whole(text []byte) (characters string, rest []byte) {
	end := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if b := text[len(text)-back]; utf8.RuneStart(b) {
			if !utf8.FullRune(text[len(text)-back:]) {
				end = len(text) - back
			}
			break
		}
	}
	return string(text[:end]), slices.Clone(text[end:])
}
