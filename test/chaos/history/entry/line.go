// Package entry reads the entries of the records of a run, each kind of record into a type of its own: writes from the
// audit log, calls from the CRI proxy, signals from the containers, faults and turns from the run.
package entry

import (
	"bufio"
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
