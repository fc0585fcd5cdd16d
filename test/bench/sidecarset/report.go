package main

import (
	"fmt"
	"io"
	"time"

	"github.com/refit-project/refit/test/bench/fakenodes"
	"github.com/refit-project/refit/test/bench/report"
)

// Targets.
const (
	writesPerPod = 2.2
	memory       = 250 << 20 // bytes
)

// findings are what is kept of a run.
type findings struct {
	report.Machine
	Nodes       int              `json:"nodes"`
	Pods        int              `json:"pods"`
	Workloads   int              `json:"workloads"`
	SidecarSets int              `json:"sidecarSets"`
	Steps       []fakenodes.Step `json:"steps"`
	Flips       []fakenodes.Flip `json:"flips"`
	Restart     time.Duration    `json:"restartNanoseconds"`
}

// Print prints the tables.
func (f *findings) Print(out io.Writer) error {
	fmt.Fprintf(out, "%d pods of %d workloads on %d nodes, simulated by kwok; %d SidecarSets for a part of the pods each and one for all; %s\n\n",
		f.Pods, f.Workloads, f.Nodes, f.SidecarSets, &f.Machine)
	if err := fakenodes.Print(out, f.Steps); err != nil {
		return err
	}
	fmt.Fprint(out, "\nchanges: objects that have to be written; writes: all requests of refit-manager that are no reads, Events and statuses among them;\n"+
		"given: until the benchmark has made the change; converged: until the statuses of all SidecarSets say that all pods are ready.\n"+
		"A replaced container is not ready for 1 s: reported by the benchmark in the place of kubelet.\n\n")
	if err := fakenodes.PrintFlips(out, f.Flips); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nrefit-manager after a restart: all pods taken in after %s\n"+
		"OpenKruise was not measured: its images are not available here. It lists and parses all matched pods for each flip.\n\n", report.Duration(f.Restart))
	verdicts := report.NewVerdicts(out)
	for i := range f.Steps {
		if s := &f.Steps[i]; s.Name == rollout {
			verdicts.Add("rollout", report.Verdict{What: "writes a pod", Target: fmt.Sprintf("<= %.1f", writesPerPod), Found: fmt.Sprintf("%.3f", s.Ratio()), Met: s.Ratio() <= writesPerPod})
		}
	}
	if n := len(f.Steps); n > 0 {
		peak := uint64(0)
		for i := range f.Steps {
			peak = max(peak, f.Steps[i].PeakRSS)
		}
		verdicts.Add("refit-manager", report.AtMost("peak memory", peak, memory, report.Bytes))
	}
	fakenodes.JudgeFlips(verdicts, f.Flips)
	return verdicts.Flush()
}

// Figures are what is compared between runs.
func (f *findings) Figures() []report.Figure { return fakenodes.Figures(f.Steps) }
