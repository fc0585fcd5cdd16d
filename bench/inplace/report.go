package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/refit-project/refit/bench/report"
)

// target is how long a pod may be unavailable in place, of what it is when it is recreated.
const target = 0.4

// findings are all results of a run.
type findings struct {
	report.Machine
	Rounds  int      `json:"rounds"`
	Results []result `json:"results"`
}

// result compares both ways for one kind of change and number of pods.
type result struct {
	Kind    string `json:"kind"`
	Pods    int    `json:"pods"`
	InPlace times  `json:"inPlace"`
	Anew    times  `json:"recreated"`
}

// times of all rounds.
type times struct {
	// Unavailable is for how long each pod was not ready, Total how long each round took from the first command until the
	// last pod was ready.
	Unavailable []time.Duration `json:"unavailableNs"`
	Total       []time.Duration `json:"totalNs"`
}

func (t *times) median() time.Duration { return report.Quantile(t.Unavailable, 0.5) }

func (f *findings) print(out io.Writer) error {
	fmt.Fprintln(out, f.String())
	fmt.Fprintf(out, "Seconds for which a pod is not ready, and for all pods of a round, of %d rounds. The new image is on the node.\n\n", f.Rounds)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "change\tpods\t\tper pod p50\tp95\tall pods p50\t")
	for _, r := range f.Results {
		for _, row := range []struct {
			how string
			times
		}{{"in place", r.InPlace}, {"recreated", r.Anew}} {
			fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t\n", r.Kind, r.Pods, row.how, report.Duration(row.median()),
				report.Duration(report.Quantile(row.Unavailable, 0.95)), report.Duration(report.Quantile(row.Total, 0.5)))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	verdicts := report.NewVerdicts(out)
	for _, r := range f.Results {
		perPod := r.InPlace.median().Seconds() / r.Anew.median().Seconds()
		total := report.Quantile(r.InPlace.Total, 0.5).Seconds() / report.Quantile(r.Anew.Total, 0.5).Seconds()
		about := fmt.Sprintf("%s, %d pods", r.Kind, r.Pods)
		verdicts.Add(about, verdict("unavailable per pod", perPod), verdict("all pods", total))
	}
	return verdicts.Flush()
}

func verdict(what string, ratio float64) report.Verdict {
	return report.Verdict{What: what, Target: fmt.Sprintf("<= %.2f x", target), Found: fmt.Sprintf("%.2f x", ratio), Met: ratio <= target}
}
