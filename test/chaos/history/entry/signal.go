package entry

import (
	"encoding/json"
	"fmt"
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
	var signals []Signal
	err := eachLine(record, in, func(number int, text []byte) error {
		var line struct {
			Time      time.Time `json:"time"`
			Event     string    `json:"event"`
			Container string    `json:"container"`
			PodUID    string    `json:"pod_uid"`
			Signal    string    `json:"signal"`
			Text      string    `json:"text"`
		}
		if err := json.Unmarshal(text, &line); err != nil {
			return err
		}
		signals = append(signals, Signal{
			Line: Line{Record: record, Number: number, Time: line.Time, Text: fmt.Sprintf("%s %s%s in container %s of pod %s",
				line.Event, line.Signal, line.Text, line.Container, line.PodUID)},
			Event: line.Event, PodUID: line.PodUID, Container: line.Container, Signal: line.Signal, Reason: line.Text,
		})
		return nil
	})
	return signals, err
}
