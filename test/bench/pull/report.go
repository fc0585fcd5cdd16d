package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/refit-project/refit/test/bench/report"
)

// Targets: how much longer than ctr, and how many writes of a NodeImage's status for each image.
const (
	timeTarget  = 1.05
	writeTarget = 12
)

// findings are all results of a run.
type findings struct {
	report.Machine
	Rounds    int      `json:"rounds"`
	Megabytes []int    `json:"megabytes"`
	Results   []result `json:"results"`
}

// result is of all images, with so many pulled at once.
type result struct {
	Parallel int             `json:"parallel"`
	Jobs     []time.Duration `json:"jobsNs"`
	Ctr      []time.Duration `json:"ctrNs"`
	// Writes of the NodeImage's status in each round, for all images together.
	Writes []int `json:"writes"`
}

// Figures are the medians of ImagePullJobs, beside the medians of ctr.
func (f *findings) Figures() []report.Figure {
	var all []report.Figure
	for _, r := range f.Results {
		all = append(all, report.Figure{
			Name: fmt.Sprintf("all images/%d at a time", r.Parallel), Unit: "ns/op",
			Value: float64(report.Quantile(r.Jobs, 0.5)), Floor: float64(report.Quantile(r.Ctr, 0.5)),
		})
	}
	return all
}

// Print prints the tables.
func (f *findings) Print(out io.Writer) error {
	fmt.Fprintln(out, f.String())
	fmt.Fprintf(out, "All of %d images of %v MB, %d rounds: from the first ImagePullJob until the last is complete, and of ctr images pull.\n\n",
		len(f.Megabytes), f.Megabytes, f.Rounds)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "at a time\tjobs p50\tslowest\tctr p50\tslowest\twrites per image\t")
	for _, r := range f.Results {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%.1f\t\n", r.Parallel, report.Duration(report.Quantile(r.Jobs, 0.5)), report.Duration(report.Quantile(r.Jobs, 1)),
			report.Duration(report.Quantile(r.Ctr, 0.5)), report.Duration(report.Quantile(r.Ctr, 1)), f.writes(&r))
	}
	return table.Flush()
}

// Verdicts compare with the targets.
func (f *findings) Verdicts() report.Verdicts {
	var verdicts report.Verdicts
	for _, r := range f.Results {
		ratio := report.Quantile(r.Jobs, 0.5).Seconds() / report.Quantile(r.Ctr, 0.5).Seconds()
		verdicts.Add(fmt.Sprintf("%d at a time", r.Parallel),
			report.AtMost("time", ratio, timeTarget, report.Ratio),
			report.Verdict{What: "status writes per image", Target: fmt.Sprintf("<= %d", writeTarget), Found: fmt.Sprintf("%.1f", f.writes(&r)), Met: f.writes(&r) <= writeTarget})
	}
	return verdicts
}

// writes for one image, in the round with the most.
func (f *findings) writes(r *result) float64 {
	return float64(slices.Max(r.Writes)) / float64(len(f.Megabytes))
}
