package entry

import (
	"io"
	"time"
)

// Signal is something that happened to a container, in its own words (test/e2e/testapp).
type Signal struct {
	Line
	Event     string // start, signal, exit; others say nothing here
	PodUID    string
	Container string
	Signal    string
	Reason    string // of an exit: signal or crash
}

// The events and reasons that matter.
const (
	EventStart  = "start"
	EventSignal = "signal"
	EventExit   = "exit"
	ExitCrash   = "crash"
)

// ParseSignals reads the log of one pod's containers.
func ParseSignals(record string, in io.Reader) ([]Signal, error) {
	type written struct {
		Time      time.Time `json:"time"`
		Event     string    `json:"event"`
		Container string    `json:"container"`
		PodUID    string    `json:"pod_uid"`
		Signal    string    `json:"signal"`
		Text      string    `json:"text"`
	}
	return parse(record, in, func(w written, line Line) (*Signal, error) {
		return &Signal{
			Line:  line.of(w.Time, "%s %s%s in container %s of pod %s", w.Event, w.Signal, w.Text, w.Container, w.PodUID),
			Event: w.Event, PodUID: w.PodUID, Container: w.Container, Signal: w.Signal, Reason: w.Text,
		}, nil
	})
}
