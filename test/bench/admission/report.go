package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/refit-project/refit/test/bench/report"
)

// What the webhook may add; and what OpenKruise adds, which was not measured by this program.
var bounds = map[int]struct{ p50, p99, peer50, peer99 float64 }{
	1: {1, 3, 3.4, 10.9},
	8: {4, 10, 20.3, 46.9},
}

// policyBound is what the injection by the API server may add to a call of the webhook that does nothing, in milliseconds.
const policyBound = 0.5

// result of one measurement, in milliseconds.
type result struct {
	Parallel                 int
	WithP50, WithP99         float64
	WithoutP50, WithoutP99   float64
	CompleteP50, CompleteP99 float64 // without the webhook, of pods that have the sidecars already
	CalledP50, CalledP99     float64 // with the webhook, of pods that no SidecarSet selects
	PolicyP50, PolicyP99     float64 // with the webhook, of pods that the API server injects

	took [kinds][]time.Duration
}

func (r *result) summarize() {
	r.WithP50, r.WithP99 = quantile(r.took[byWebhook], 0.5), quantile(r.took[byWebhook], 0.99)
	r.WithoutP50, r.WithoutP99 = quantile(r.took[plain], 0.5), quantile(r.took[plain], 0.99)
	r.CompleteP50, r.CompleteP99 = quantile(r.took[complete], 0.5), quantile(r.took[complete], 0.99)
	r.CalledP50, r.CalledP99 = quantile(r.took[unmatched], 0.5), quantile(r.took[unmatched], 0.99)
	r.PolicyP50, r.PolicyP99 = quantile(r.took[byPolicy], 0.5), quantile(r.took[byPolicy], 0.99)
}

func quantile(list []time.Duration, q float64) float64 {
	return float64(report.Quantile(list, q).Microseconds()) / 1000
}

type findings struct {
	report.Machine
	SidecarSets int
	Required    bool
	Results     []result
}

// Figures are the creations with the webhook, beside the creations of the same pods without it.
func (f *findings) Figures() []report.Figure {
	var all []report.Figure
	for i := range f.Results {
		r := &f.Results[i]
		all = append(all,
			report.Figure{Name: fmt.Sprintf("p50/%d at a time", r.Parallel), Unit: "ns/op", Value: 1e6 * r.WithP50, Floor: 1e6 * r.WithoutP50},
			report.Figure{Name: fmt.Sprintf("p99/%d at a time", r.Parallel), Unit: "ns/op", Value: 1e6 * r.WithP99, Floor: 1e6 * r.WithoutP99})
	}
	return all
}

// Print prints the tables.
func (f *findings) Print(out io.Writer) error {
	fmt.Fprintln(out, f.String())
	fmt.Fprintf(out, "creation of pods with %d SidecarSets, 2 of which select them; failurePolicy Fail: %t\n\n", f.SidecarSets, f.Required)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "at a time\tpods\tp50\tp99\tmore than without\t\t")
	for i := range f.Results {
		r := &f.Results[i]
		for _, row := range []struct {
			what     string
			p50, p99 float64
		}{
			{"without", r.WithoutP50, r.WithoutP99},
			{"with the sidecars already, without", r.CompleteP50, r.CompleteP99},
			{"webhook called, nothing to inject", r.CalledP50, r.CalledP99},
			{"injected by the API server", r.PolicyP50, r.PolicyP99},
			{"injected by the webhook", r.WithP50, r.WithP99},
		} {
			fmt.Fprintf(table, "%d\t%s\t%.2f ms\t%.2f ms\t%.2f ms\t%.2f ms\t\n", r.Parallel, row.what, row.p50, row.p99, row.p50-r.WithoutP50, row.p99-r.WithoutP99)
		}
		fmt.Fprintf(table, "%d\tOpenKruise (not measured here)\t\t\t%.1f ms\t%.1f ms\t\n", r.Parallel, bounds[r.Parallel].peer50, bounds[r.Parallel].peer99)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprint(out, "\nwithout: no webhook is called. The webhook is also called for pods that the API server injects, by a MutatingAdmissionPolicy.\n\n")
	return nil
}

// added returns what the webhook adds to the p50 and the p99.
func (r *result) added() (p50, p99 float64) {
	return r.WithP50 - r.WithoutP50, r.WithP99 - r.WithoutP99
}

// Verdicts compare with the targets.
func (f *findings) Verdicts() report.Verdicts {
	var verdicts report.Verdicts
	for i := range f.Results {
		r := &f.Results[i]
		bound, policy50 := bounds[r.Parallel], r.PolicyP50-r.CalledP50
		added50, added99 := r.added()
		verdicts.Add(fmt.Sprintf("%d at a time", r.Parallel),
			report.Verdict{What: "added p50", Target: fmt.Sprintf("<= %.0f ms", bound.p50), Found: fmt.Sprintf("%.2f ms", added50), Met: added50 <= bound.p50},
			report.Verdict{What: "added p99", Target: fmt.Sprintf("<= %.0f ms", bound.p99), Found: fmt.Sprintf("%.2f ms", added99), Met: added99 <= bound.p99})
		if r.Parallel == 1 {
			verdicts.Add("1 at a time", report.Verdict{What: "engine Policy, more than the call: p50", Target: fmt.Sprintf("<= %.1f ms", policyBound), Found: fmt.Sprintf("%.2f ms", policy50), Met: policy50 <= policyBound})
		}
	}
	return verdicts
}
