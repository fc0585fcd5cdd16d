// Package traffic is what examples/hotupgrade/load prints: what became of the requests, interval by interval.
package traffic

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Length of an interval.
const Length = 100 * time.Millisecond

// Interval is what became of the requests that ended in an interval, or of all.
type Interval struct {
	// Time is when the interval ended. Total says that it is all.
	Time  time.Time `json:"time"`
	Total bool      `json:"total,omitempty"`
	// Answers are the numbers of answers, by what the server said: its version.
	Answers map[string]int `json:"answers,omitempty"`
	// Failed are the requests without an answer, Refused those of them for which no connection was accepted.
	Failed  int `json:"failed"`
	Refused int `json:"refused"`
	// Slowest answer, in milliseconds.
	Slowest float64 `json:"slowestMilliseconds"`
	// Kept and Opened are the connections that were opened: by clients that keep theirs, and by others.
	Kept   int    `json:"kept"`
	Opened int    `json:"opened"`
	Error  string `json:"error,omitempty"` // the last one
}

// Requests are the answers and the failures.
func (i *Interval) Requests() int {
	requests := i.Failed
	for _, n := range i.Answers {
		requests += n
	}
	return requests
}

// ErrUnfinished is that of a log without the line of all requests.
var ErrUnfinished = errors.New("the load has not ended")

// Read reads what load has printed: its intervals, and all of them in one.
func Read(log io.Reader) (intervals []Interval, total Interval, err error) {
	for decoder := json.NewDecoder(log); ; {
		var i Interval
		if err := decoder.Decode(&i); errors.Is(err, io.EOF) {
			return intervals, total, ErrUnfinished
		} else if err != nil {
			return nil, total, fmt.Errorf("read load: %w", err)
		}
		if i.Total {
			return intervals, i, nil
		}
		intervals = append(intervals, i)
	}
}

// Versions are those of the answers, in order.
func (i *Interval) Versions() []string { return slices.Sorted(maps.Keys(i.Answers)) }
