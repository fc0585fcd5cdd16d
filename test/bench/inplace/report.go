package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/refit-project/refit/test/bench/report"
)

// target is how long a pod may be unavailable in place, of what it is when it is recreated.
const target = 0.4

// stopTarget compares with a stop of the container through CRI alone, after which kubelet starts the next one.
const stopTarget = 1.1

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
	// Stopped is only measured for changes that restart the container through CRI.
	Stopped times `json:"stopped"`
}

// times of all rounds.
type times struct {
	// Unavailable is for how long each pod was not ready, Unanswered for how long no request to it was answered, Total how long each round took from the first command until the
	// last pod was ready.
	Unavailable []time.Duration `json:"unavailableNs"`
	Unanswered  []time.Duration `json:"unansweredNs"`
	Total       []time.Duration `json:"totalNs"`
}

func (t *times) median() time.Duration { return report.Quantile(t.Unavailable, 0.5) }

// Figures are the medians in place, beside the medians of pods that are recreated.
func (f *findings) Figures() []report.Figure {
	var all []report.Figure
	for _, r := range f.Results {
		about := fmt.Sprintf("%s, %d pods", r.Kind, r.Pods)
		all = append(all,
			report.Figure{Name: "not ready/" + about, Unit: "ns/op", Value: float64(r.InPlace.median()), Floor: float64(r.Anew.median())},
			report.Figure{Name: "no answer/" + about, Unit: "ns/op",
				Value: float64(report.Quantile(r.InPlace.Unanswered, 0.5)), Floor: float64(report.Quantile(r.Anew.Unanswered, 0.5))})
	}
	return all
}

// Print prints the tables.
func (f *findings) Print(out io.Writer) error {
	fmt.Fprintln(out, f.String())
	fmt.Fprintf(out, "For how long a pod is not ready, for how long it answers no request, and how long a round takes, of %d rounds. In place and recreated\n"+
		"have the same pod, without any drain, and the new image on the node. Recreated as by a StatefulSet: the old pod is gone before the new one is made.\n\n", f.Rounds)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "change\tpods\t\tnot ready p50\tp95\tno answer p50\tp95\tround p50\t")
	for _, r := range f.Results {
		for _, row := range []struct {
			how string
			times
		}{{"in place", r.InPlace}, {"recreated", r.Anew}, {"stopped through CRI", r.Stopped}} {
			if len(row.Total) == 0 {
				continue
			}
			fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Kind, r.Pods, row.how, report.Duration(row.median()),
				report.Duration(report.Quantile(row.Unavailable, 0.95)), report.Duration(report.Quantile(row.Unanswered, 0.5)),
				report.Duration(report.Quantile(row.Unanswered, 0.95)), report.Duration(report.Quantile(row.Total, 0.5)))
		}
	}
	return table.Flush()
}

// Verdicts compare with the targets.
func (f *findings) Verdicts() report.Verdicts {
	var verdicts report.Verdicts
	for _, r := range f.Results {
		perPod := r.InPlace.median().Seconds() / r.Anew.median().Seconds()
		total := report.Quantile(r.InPlace.Total, 0.5).Seconds() / report.Quantile(r.Anew.Total, 0.5).Seconds()
		about := fmt.Sprintf("%s, %d pods", r.Kind, r.Pods)
		unanswered := report.Quantile(r.InPlace.Unanswered, 0.5).Seconds() / report.Quantile(r.Anew.Unanswered, 0.5).Seconds()
		verdicts.Add(about,
			report.AtMost("not ready, per pod", perPod, target, report.Ratio), report.AtMost("no answer, per pod", unanswered, target, report.Ratio),
			report.AtMost("all pods", total, target, report.Ratio))
		if len(r.Stopped.Total) > 0 {
			stopped := report.Quantile(r.Stopped.Unanswered, 0.5).Seconds()
			verdicts.Add(about, report.AtMost("no answer, against the stop alone", report.Quantile(r.InPlace.Unanswered, 0.5).Seconds()/stopped, stopTarget, report.Ratio))
		}
	}
	return verdicts
}
