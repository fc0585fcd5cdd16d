// Package entry reads the entries of the records of a run, each kind of record into a type of its own: writes from the
// audit log, calls from the CRI proxy, signals from the containers, faults and turns from the run.
package entry

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Line is a place in a record, as proof.
type Line struct {
	Record string // the file's name
	Number int    // from 1
	Time   time.Time
	Text   string // what it says, shortened
}

func (l Line) String() string {
	return fmt.Sprintf("%s:%d %s %s", l.Record, l.Number, l.Time.UTC().Format("15:04:05.000"), l.Text)
}

// eachLine hands every complete line to parse. A last line without an end is still being written and is left out;
// an error of parse is returned with the line's number.
func eachLine(record string, in io.Reader, parse func(number int, text []byte) error) error {
	reader := bufio.NewReaderSize(in, 1<<20)
	for number := 1; ; number++ {
		text, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", record, err)
		}
		if err := parse(number, text); err != nil {
			return fmt.Errorf("read %s line %d: %w", record, number, err)
		}
	}
}

// of is the line with its time, and with what it says.
func (l Line) of(at time.Time, format string, args ...any) Line {
	l.Time, l.Text = at, fmt.Sprintf(format, args...)
	return l
}

// parse decodes every line of a record. What made returns for a line is an entry, unless it is nil.
func parse[L, E any](record string, in io.Reader, made func(text L, line Line) (*E, error)) ([]E, error) {
	var entries []E
	err := eachLine(record, in, func(number int, text []byte) error {
		var decoded L
		if err := json.Unmarshal(text, &decoded); err != nil {
			return err
		}
		entry, err := made(decoded, Line{Record: record, Number: number})
		if err == nil && entry != nil {
			entries = append(entries, *entry)
		}
		return err
	})
	return entries, err
}
