package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/refit-project/refit/test/bench/fakenodes"
	"github.com/refit-project/refit/test/bench/report"
)

// Targets.
const (
	writesPerPod = 4
	memoryPerPod = 12 << 10 // bytes
)

// findings are what is kept of a run.
type findings struct {
	report.Machine
	Nodes int              `json:"nodes"`
	Pods  int              `json:"pods"`
	Steps []fakenodes.Step `json:"steps"`
	Flips []fakenodes.Flip `json:"flips"`
}

// step returns a step by its name; nil if it was not run.
func (f *findings) step(name string) *fakenodes.Step {
	i := slices.IndexFunc(f.Steps, func(s fakenodes.Step) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Steps[i]
}

// Print prints the tables.
func (f *findings) Print(out io.Writer) error {
	fmt.Fprintf(out, "%d pods of one Deployment with an InPlaceUpdatePolicy on %d nodes, simulated by kwok; %s\n\n", f.Pods, f.Nodes, &f.Machine)
	if err := fakenodes.Print(out, f.Steps); err != nil {
		return err
	}
	fmt.Fprint(out, "\nchanges: pods that have to be written; writes: all requests of refit-manager that are no reads, Events and statuses among them;\n"+
		"given: until the benchmark has made the change; converged: until the status says that all pods have the template and are ready.\n"+
		"A replaced container is not ready for 1 s: reported by the benchmark in the place of kubelet.\n\n")
	if err := fakenodes.PrintFlips(out, f.Flips); err != nil {
		return err
	}
	fmt.Fprintln(out)
	verdicts := report.NewVerdicts(out)
	if s := f.step(rollout); s != nil {
		verdicts.Add("rollout", report.Verdict{What: "writes a pod", Target: fmt.Sprintf("<= %d", writesPerPod), Found: fmt.Sprintf("%.3f", s.Ratio()), Met: s.Ratio() <= writesPerPod})
	}
	if before, after := f.step(empty), f.step(rollout); before != nil && after != nil {
		verdicts.Add("refit-manager", report.AtMost("private memory a pod", perPod(before, after, f.Pods), memoryPerPod, kilobytes))
	}
	fakenodes.JudgeFlips(verdicts, f.Flips)
	return verdicts.Flush()
}

func kilobytes(n uint64) string { return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10)) }

// perPod returns by how much the private memory has grown between two steps, for each pod.
func perPod(before, after *fakenodes.Step, pods int) uint64 {
	if after.RSSAnon < before.RSSAnon {
		return 0
	}
	return (after.RSSAnon - before.RSSAnon) / uint64(pods)
}

// Figures are what is compared between runs.
func (f *findings) Figures() []report.Figure { return fakenodes.Figures(f.Steps) }
