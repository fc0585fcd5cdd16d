package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/refit-project/refit/test/bench/report"
)

// target is what an update in place may take of what a rolling update takes.
const target = 0.4

// findings are all results of a run.
type findings struct {
	report.Machine
	Rounds  int      `json:"rounds"`
	Results []result `json:"results"`
}

// result is what one way of updating took.
type result struct {
	Way     string `json:"way"`
	Pace    string `json:"pace"`
	Pods    int    `json:"pods"`
	InPlace bool   `json:"inPlace"`
	// Total is how long each update took, Unavailable for how long pods were missing in it, added up over the pods.
	Total       []time.Duration `json:"totalNs"`
	Unavailable []time.Duration `json:"unavailableNs"`
	// Created is how many pods were created: scheduled, with an image that their node had to have, and with another IP.
	Created int `json:"createdPods"`
}

func (r *result) total() time.Duration       { return report.Quantile(r.Total, 0.5) }
func (r *result) unavailable() time.Duration { return report.Quantile(r.Unavailable, 0.5) }

// Figures are the medians.
func (f *findings) Figures() []report.Figure {
	var all []report.Figure
	for i := range f.Results {
		r := &f.Results[i]
		about := fmt.Sprintf("%s, %d pods", r.Way, r.Pods)
		all = append(all, report.Figure{Name: "total/" + about, Unit: "ns/op", Value: float64(r.total())},
			report.Figure{Name: "unavailable/" + about, Unit: "ns/op", Value: float64(r.unavailable())})
	}
	return all
}

// Print prints the tables.
func (f *findings) Print(out io.Writer) error {
	fmt.Fprintln(out, f.String())
	fmt.Fprintf(out, "A Deployment gets another image, which the nodes have: medians of %d updates. Unavailable: for how long pods were missing or not ready,\n"+
		"added up over the pods. Created: pods that were created and scheduled, in all updates.\n\n", f.Rounds)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "update\tpods\ttotal\tunavailable\tcreated\t")
	for i := range f.Results {
		r := &f.Results[i]
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%d\t\n", r.Way, r.Pods, report.Duration(r.total()), report.Duration(r.unavailable()), r.Created)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	verdicts := report.NewVerdicts(out)
	for i := range f.Results {
		if r := &f.Results[i]; r.InPlace {
			f.judge(verdicts, r)
		}
	}
	return verdicts.Flush()
}

// judge compares an update in place with the rolling updates of the same pace.
func (f *findings) judge(verdicts report.Verdicts, r *result) {
	about := fmt.Sprintf("%d pods, %s", r.Pods, r.Way)
	verdicts.Add(about, report.None("pods created", r.Created))
	for i := range f.Results {
		native := &f.Results[i]
		if native.InPlace || native.Pods != r.Pods || native.Pace != r.Pace {
			continue
		}
		verdicts.Add(about, report.AtMost("total, against "+native.Way, r.total().Seconds()/native.total().Seconds(), target, report.Ratio))
		if native.unavailable() > 0 {
			verdicts.Add(about, report.AtMost("unavailable, against "+native.Way, r.unavailable().Seconds()/native.unavailable().Seconds(), target, report.Ratio))
		}
	}
}
