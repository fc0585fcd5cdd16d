package main

import (
	"fmt"
	"io"

	"github.com/refit-project/refit/bench/fakenodes"
	"github.com/refit-project/refit/bench/report"
)

// findings are what is kept of a run.
type findings struct {
	report.Machine
	Nodes int              `json:"nodes"`
	Pods  int              `json:"pods"`
	Steps []fakenodes.Step `json:"steps"`
}

func (r *findings) print(out io.Writer) error {
	fmt.Fprintf(out, "%d nodes and %d pods, simulated by kwok; %s\n\n", r.Nodes, r.Pods, &r.Machine)
	if err := fakenodes.Print(out, r.Steps); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, "\nchanges: objects that have to be written; writes: all requests of refit-manager that are no reads, Events and the status of the\n"+
		"marker among them; given: until the benchmark has made the change; converged: until everything follows it\n")
	return err
}
