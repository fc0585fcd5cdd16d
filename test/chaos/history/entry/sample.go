package entry

import (
	"errors"
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
	return parse(record, in, func(s Sample, line Line) (*Sample, error) {
		if s.At.IsZero() || s.PID == 0 || s.Program == "" {
			return nil, errors.New("sample: want a time, a program and a process")
		}
		s.Line = line.of(s.At, "%s %d: %d KiB, %d files, %d threads", s.Program, s.PID, s.Anon>>10, s.Files, s.Threads)
		return &s, nil
	})
}
