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
	// Failed are the requests without an answer, Refused the failed requests for which no connection was accepted.
	Failed  int `json:"failed"`
	Refused int `json:"refused"`
	// Slowest answer, in milliseconds.
	Slowest float64 `json:"slowestMilliseconds"`
	// Kept and Opened are the connections that were opened: by clients that keep theirs, and by others.
	Kept   int    `json:"kept"`
	Opened int    `json:"opened"`
	Error  string `json:"error,omitempty"` // the last one
	// Failures are the first of the failed requests, at most MaxFailures; of an interval only, not of all.
	Failures []Failure `json:"failures,omitempty"`
}

// MaxFailures bounds how many failed requests of an interval are described.
const MaxFailures = 20

// Failure is one failed request.
type Failure struct {
	// Time is when it failed, Milliseconds how long it had lasted.
	Time         time.Time `json:"time"`
	Milliseconds float64   `json:"milliseconds"`
	// Local is the client's address and port, by which a packet capture and a connection table show what became of the
	// connection; empty if it is not known.
	Local string `json:"local,omitempty"`
	// Kept says that the connection had served requests before. Age is the age of the connection in milliseconds; 0 if none was opened.
	Kept  bool    `json:"kept,omitempty"`
	Age   float64 `json:"ageMilliseconds,omitempty"`
	Error string  `json:"error"`
	// Refused says that nothing accepted the connection.
	Refused bool `json:"refused,omitempty"`
}

// String is one line about it.
func (f Failure) String() string {
	connection := "no connection"
	switch {
	case f.Kept:
		connection = fmt.Sprintf("a connection kept for %.0f ms", f.Age)
	case f.Age > 0:
		connection = "a new connection"
	}
	return fmt.Sprintf("%s, after %.1f ms, from %s, %s: %s", f.Time.UTC().Format("15:04:05.000"), f.Milliseconds, f.Local, connection, f.Error)
}

// Requests are the answers and the failures.
func (i *Interval) Requests() int {
	requests := i.Failed
	for _, n := range i.Answers {
		requests += n
	}
	return requests
}

// ErrUnfinished means that a log does not have the line of all requests.
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

// Versions are the versions in the answers, in order.
func (i *Interval) Versions() []string { return slices.Sorted(maps.Keys(i.Answers)) }
