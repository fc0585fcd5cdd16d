package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/refit-project/refit/test/bench/crr/verdict"
	"github.com/refit-project/refit/test/bench/report"
)

// findings are what is kept of a run.
type findings struct {
	report.Machine
	Kubelet string           `json:"kubelet"`
	Runtime string           `json:"runtime"`
	Images  []string         `json:"images"`
	Pairs   int              `json:"pairs"`
	Rounds  int              `json:"rounds"`
	Results []verdict.Result `json:"results"`
}

// Print prints the tables.
func (r *findings) Print(out io.Writer) error {
	fmt.Fprintf(out, "kubelet %s, %s; %s\n\n", r.Kubelet, r.Runtime, &r.Machine)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "scenario\tn\trefit p50\tp99\tlast\tfloor p50\tp99\tlast\tnoise\tratio\twrites\tevents\tCRI calls\tRSS\tpeak\tCPU\t")
	for _, one := range r.Results {
		o, f, c := one.Ours, one.Floor, one.Cost
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.2f\t%.2f\t%.2f\t%.1f\t%s\t%s\t%s\t\n", one.Name, o.Runs,
			report.Duration(o.P50), report.Duration(o.P99), report.Duration(o.Last), report.Duration(f.P50), report.Duration(f.P99), report.Duration(f.Last), report.Duration(f.Spread), one.Ratio,
			c.WritesEach, c.EventsEach, c.CallsEach, report.Bytes(c.RSS), report.Bytes(c.PeakRSS), report.Duration(c.CPU))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprint(out, "\nlast: mean of the rounds, noise: how far the floor's rounds differ; writes, events, CRI calls: per request\n\n")
	for _, one := range r.Results {
		for _, note := range one.Notes {
			fmt.Fprintf(out, "\n%s: %s", one.Name, note)
		}
	}
	fmt.Fprintln(out)
	return nil
}

// Verdicts compare with the targets.
func (r *findings) Verdicts() report.Verdicts {
	var verdicts report.Verdicts
	for _, one := range r.Results {
		verdicts.Add(one.Name, one.Verdicts...)
	}
	return verdicts
}

// Figures are what is compared between runs.
func (r *findings) Figures() []report.Figure {
	var all []report.Figure
	for _, one := range r.Results {
		o, f := one.Ours, one.Floor
		for what, pair := range map[string][2]time.Duration{"p50": {o.P50, f.P50}, "p99": {o.P99, f.P99}, "last": {o.Last, f.Last}} {
			all = append(all, report.Figure{Name: one.Name + "/" + what, Unit: "ns/op", Value: float64(pair[0]), Floor: float64(pair[1])})
		}
		all = append(all, report.Figure{Name: one.Name + "/peak RSS", Unit: "B", Value: float64(one.Cost.PeakRSS)})
	}
	slices.SortFunc(all, func(a, b report.Figure) int { return strings.Compare(a.Name, b.Name) })
	return all
}
