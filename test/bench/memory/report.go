package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/refit-project/refit/test/bench/report"
)

// findings are what is kept of a run.
type findings struct {
	report.Machine
	Pods     int   `json:"pods"`
	Requests int   `json:"requests"`
	Probes   int   `json:"probes"`
	Rows     []row `json:"rows"`
}

// row is one program at one time.
type row struct {
	Program string `json:"program"`
	When    string `json:"when"`
	usage
}

// Print prints the tables.
func (f *findings) Print(out io.Writer) error {
	fmt.Fprintf(out, "%d pods, %d requests, then %d probes every second; %s\n\n", f.Pods, f.Requests, f.Probes, &f.Machine)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "program\twhen\tRssAnon\tworking set\t")
	for _, r := range f.Rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t\n", r.Program, r.When, report.Bytes(r.Anonymous), report.Bytes(r.WorkingSet))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nRssAnon: private memory of the process; working set: what its cgroup is charged, without inactive file cache")
	return nil
}

// Verdicts compare with the targets.
func (f *findings) Verdicts() report.Verdicts {
	var verdicts report.Verdicts
	verdicts.Add("memory", f.verdicts()...)
	return verdicts
}

// targets, in bytes of RssAnon.
const (
	daemonIdle  = 14 << 20
	sidecarIdle = 8 << 20
	// recovered is how much of the idle daemon's memory it may have a while after a load.
	recovered = 1.2
)

func (f *findings) verdicts() []report.Verdict {
	// Of each load the second look is a while after it.
	first, after := map[string]uint64{}, map[string]uint64{}
	for _, r := range f.Rows {
		if _, ok := first[r.Program]; !ok {
			first[r.Program] = r.Anonymous
		}
		if !strings.HasPrefix(r.When, "right after") {
			after[r.Program] = max(after[r.Program], r.Anonymous)
		}
	}
	ratio := float64(after[daemon.name]) / float64(max(first[daemon.name], 1))
	return []report.Verdict{
		report.AtMost("refit-daemon, idle", first[daemon.name], daemonIdle, report.Bytes),
		{What: "refit-daemon, a while after each load", Target: fmt.Sprintf("<= %.1f x idle", recovered), Found: fmt.Sprintf("%.2f x", ratio), Met: ratio <= recovered},
		report.AtMost("refit-sidecar, idle", first[sidecar.name], sidecarIdle, report.Bytes),
	}
}

// Figures are what is compared between runs.
func (f *findings) Figures() []report.Figure {
	var all []report.Figure
	for _, r := range f.Rows {
		all = append(all,
			report.Figure{Name: r.Program + "/" + r.When + "/RssAnon", Unit: "B", Value: float64(r.Anonymous)},
			report.Figure{Name: r.Program + "/" + r.When + "/working set", Unit: "B", Value: float64(r.WorkingSet)})
	}
	return all
}
