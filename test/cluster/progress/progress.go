// Package progress tells the person in front of the screen what is going on and how long it takes.
package progress

import (
	"fmt"
	"io"
	"os"
	"time"
)

const heartbeat = 15 * time.Second

// Reporter writes one line when a step starts, one now and then while it lasts and one when it ends.
type Reporter struct {
	out   io.Writer
	start time.Time
}

// New returns a Reporter whose clock starts now, or when the program did of which this is a step: hack/step says so in
// PROGRESS_START (RFC 3339), so that the times of both are of one clock.
func New(out io.Writer) *Reporter {
	start, err := time.Parse(time.RFC3339Nano, os.Getenv("PROGRESS_START"))
	if err != nil {
		start = time.Now()
	}
	return &Reporter{out: out, start: start}
}

// Step runs do and reports it. It returns the error of do, which is the caller's to report.
func (r *Reporter) Step(name string, do func() error) error {
	began := time.Now()
	running := func() string { return "running for " + time.Since(began).Round(time.Second).String() }
	return r.StepWithStatus(name, running, do)
}

// StepWithStatus is Step for one that can say how far it is. Status is called from another goroutine than do.
func (r *Reporter) StepWithStatus(name string, status func() string, do func() error) error {
	r.Say(name + " ...")
	began := time.Now()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(heartbeat)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				r.Say(name + ": " + status())
			}
		}
	}()
	err := do()
	close(stop)
	<-stopped
	if err == nil {
		r.Say(fmt.Sprintf("%s: done in %.1f s", name, time.Since(began).Seconds()))
	}
	return err
}

// Say writes one line with the time since the start in front.
func (r *Reporter) Say(line string) {
	fmt.Fprintf(r.out, "[%6.1fs] %s\n", time.Since(r.start).Seconds(), line)
}
