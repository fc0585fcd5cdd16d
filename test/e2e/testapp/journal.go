package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The events of a Line.
const (
	eventStart   = "start"
	eventSignal  = "signal"
	eventReady   = "ready"
	eventPreStop = "prestop"
	eventNote    = "note"
	eventExit    = "exit"
	eventFile    = "file"    // another version of the files is in place
	eventTorn    = "torn"    // a file that is not whole, or a set that is not of one version
	eventLoaded  = "loaded"  // the application has taken a version over
	eventUpdate  = "update"  // an update is asked for
	eventUpdated = "updated" // and answered
	eventSpan    = "span"    // of a trace that somebody has sent
)

// line is one event.
type line struct {
	Time      time.Time `json:"time"`    // nanoseconds
	MonoNS    int64     `json:"mono_ns"` // CLOCK_MONOTONIC: comparable on one node, whatever the clock does
	Event     string    `json:"event"`
	PID       int       `json:"pid"`
	Host      string    `json:"host"`
	Container string    `json:"container,omitempty"`
	PodUID    string    `json:"pod_uid,omitempty"`
	Signal    string    `json:"signal,omitempty"`
	Text      string    `json:"text,omitempty"`
	ExitCode  *int      `json:"exit_code,omitempty"`
	Span      *span     `json:"span,omitempty"`
}

// journal writes lines whole: each is one write, to a file opened for appending.
type journal struct {
	host, container, podUID string

	mu  sync.Mutex
	out []io.WriteCloser
}

func newJournal(getenv func(string) string, stdout io.Writer) (*journal, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("hostname: %w", err)
	}
	j := &journal{
		host: host, container: getenv("CONTAINER_NAME"), podUID: getenv("POD_UID"),
		out: []io.WriteCloser{keepOpen{stdout}},
	}
	if name := getenv("SIGNAL_LOG"); name != "" {
		file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, fmt.Errorf("open SIGNAL_LOG: %w", err)
		}
		j.out = append(j.out, file)
	}
	return j, nil
}

func (j *journal) add(l line) error {
	var mono unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono); err != nil {
		return fmt.Errorf("read clock: %w", err)
	}
	l.Time, l.MonoNS = time.Now().UTC(), mono.Nano()
	l.PID, l.Host, l.Container, l.PodUID = os.Getpid(), j.host, j.container, j.podUID
	b, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []error
	for _, w := range j.out {
		_, err := w.Write(append(b, '\n'))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (j *journal) close() error {
	var errs []error
	for _, w := range j.out {
		errs = append(errs, w.Close())
	}
	return errors.Join(errs...)
}

// keepOpen is for stdout, which is not ours to close.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// signalName is the name with SIG; real-time signals have none but their number.
func signalName(s unix.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(s))
}
