package entry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Sample is what a process of ours used at one moment.
type Sample struct {
	At      time.Time `json:"time"`
	Program string    `json:"program"`
	PID     int       `json:"pid"`
	// Leads is set for the manager that leads: it keeps what its controllers need.
	Leads bool `json:"leads,omitempty"`
	// Anon is RssAnon, in bytes.
	Anon    int64 `json:"anon"`
	Files   int   `json:"files"`
	Threads int   `json:"threads"`

	// Line of the record.
	Line Line `json:"-"`
}

// ParseSamples reads the record of the samples.
func ParseSamples(record string, in io.Reader) ([]Sample, error) {
	var samples []Sample
	err := eachLine(record, in, func(number int, text []byte) error {
		var s Sample
		if err := json.Unmarshal(text, &s); err != nil {
			return err
		}
		if s.At.IsZero() || s.PID == 0 || s.Program == "" {
			return errors.New("sample: want a time, a program and a process")
		}
		s.Line = Line{Record: record, Number: number, Time: s.At,
			Text: fmt.Sprintf("%s %d: %d KiB, %d files, %d threads", s.Program, s.PID, s.Anon>>10, s.Files, s.Threads)}
		samples = append(samples, s)
		return nil
	})
	return samples, err
}
