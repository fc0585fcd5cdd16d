package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/refit-project/refit/bench/report"
)

// step is one change and what the manager did for it.
type step struct {
	Name string `json:"name"`
	// Changes are the objects that cannot be as they are after it without a write each; Writes those that there were,
	// Events and the marker's status among them.
	Changes int `json:"changes"`
	Writes  int `json:"apiWrites"`
	Reads   int `json:"apiReads"`
	// Given is how long the benchmark took to bring the change about, Converged how long until all was as it is to be;
	// both from the begin.
	Given     time.Duration `json:"givenNanoseconds"`
	Converged time.Duration `json:"convergedNanoseconds"`
	CPU       time.Duration `json:"managerCPUNanoseconds"`
	RSS       uint64        `json:"managerRSSBytes"`
	PeakRSS   uint64        `json:"managerPeakRSSBytes"`
	RSSAnon   uint64        `json:"managerRSSAnonBytes"`
}

// findings are what is kept of a run.
type findings struct {
	report.Machine
	Nodes int    `json:"nodes"`
	Pods  int    `json:"pods"`
	Steps []step `json:"steps"`
}

func (r *findings) print(out io.Writer) error {
	fmt.Fprintf(out, "%d nodes and %d pods, played by kwok; %s\n\n", r.Nodes, r.Pods, &r.Machine)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "step\tchanges\twrites\tratio\treads\tgiven\tconverged\tCPU\tRSS\tanonymous\tpeak\t")
	for _, s := range r.Steps {
		ratio := "-"
		if s.Changes > 0 {
			ratio = fmt.Sprintf("%.3f", float64(s.Writes)/float64(s.Changes))
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t\n", s.Name, s.Changes, s.Writes, ratio, s.Reads,
			report.Duration(s.Given), report.Duration(s.Converged), report.Duration(s.CPU), report.Bytes(s.RSS), report.Bytes(s.RSSAnon), report.Bytes(s.PeakRSS))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, "\nchanges: objects that have to be written; writes: all requests of refit-manager that are no reads, Events and the status of the\n"+
		"marker among them; given: until the benchmark has made the change; converged: until everything follows it\n")
	return err
}

// figures are what is compared between runs.
func (r *findings) figures() []report.Figure {
	var all []report.Figure
	for _, s := range r.Steps {
		all = append(all,
			report.Figure{Name: s.Name + "/converged", Unit: "ns/op", Value: float64(s.Converged), Floor: float64(s.Given)},
			report.Figure{Name: s.Name + "/RssAnon", Unit: "B", Value: float64(s.RSSAnon)},
			report.Figure{Name: s.Name + "/peak RSS", Unit: "B", Value: float64(s.PeakRSS)})
		if s.Changes > 0 {
			all = append(all, report.Figure{Name: s.Name + "/writes", Unit: "writes/change", Value: float64(s.Writes) / float64(s.Changes)})
		}
	}
	return all
}
