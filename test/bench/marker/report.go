package main

import (
	"fmt"
	"io"
	"time"

	"github.com/refit-project/refit/test/bench/fakenodes"
	"github.com/refit-project/refit/test/bench/report"
)

// findings are what is kept of a run.
type findings struct {
	report.Machine
	Nodes int              `json:"nodes"`
	Pods  int              `json:"pods"`
	Steps []fakenodes.Step `json:"steps"`
}

// Print prints the tables.
func (r *findings) Print(out io.Writer) error {
	fmt.Fprintf(out, "%d nodes and %d pods, simulated by kwok; %s\n\n", r.Nodes, r.Pods, &r.Machine)
	if err := fakenodes.Print(out, r.Steps); err != nil {
		return err
	}
	if _, err := fmt.Fprint(out, "\nchanges: objects that have to be written; writes: all requests of refit-manager that are no reads, Events and the status of the\n"+
		"marker among them; given: until the benchmark has made the change; converged: until everything follows it\n\n"); err != nil {
		return err
	}
	return nil
}

// Verdicts compare with the targets.
func (r *findings) Verdicts() report.Verdicts {
	var verdicts report.Verdicts
	for i := range r.Steps {
		verdicts.Add(r.Steps[i].Name, verdictsOf(&r.Steps[i])...)
	}
	return verdicts
}

// Targets of a run with 5,000 pods.
const (
	markedIn   = 30 * time.Second // and unmarked
	perChange  = 1.01             // writes: writes of the marker's status and Events beside one for each object
	mostMemory = 100 << 20        // RssAnon of refit-manager
)

func verdictsOf(s *fakenodes.Step) []report.Verdict {
	all := []report.Verdict{report.AtMost("memory", s.RSSAnon, mostMemory, report.Bytes)}
	if s.Name == firstResults || s.Name == markerDeleted {
		all = append(all, report.AtMost("converged", s.Converged, markedIn, report.Duration))
	}
	if s.Changes > 0 {
		return append(all, report.Verdict{What: "writes per change", Target: fmt.Sprintf("<= %.2f", perChange), Found: fmt.Sprintf("%.3f", s.Ratio()), Met: s.Ratio() <= perChange})
	}
	return append(all, report.None("writes without a change", s.Writes))
}

// Figures are what is compared between runs.
func (r *findings) Figures() []report.Figure { return fakenodes.Figures(r.Steps) }
