package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/refit-project/refit/test/bench/report"
)

// result of one scenario: the same pods without probes, with ours, and with ours and kubelet's if that was done.
type result struct {
	scenario scenario
	Name     string  `json:"name"`
	Idle     sample  `json:"idle"`
	Ours     sample  `json:"ours"`
	Flips    *sample `json:"flips,omitempty"`
	Both     *sample `json:"both,omitempty"`
	// Noise is how far kubelet's CPU varies without probes.
	Noise float64 `json:"kubeletNoise"`
}

// ratio is the daemon's CPU over what kubelet's probes cost it, both above what they use without probes; none when
// the latter cannot be told from kubelet's noise.
func (r result) ratio() (float64, bool) {
	if r.Both == nil {
		return 0, false
	}
	floor := r.Both.Kubelet - r.Idle.Kubelet
	return (r.Both.Daemon - r.Idle.Daemon) / floor, floor > r.Noise
}

// verdicts compare with the targets.
func (r result) verdicts() []report.Verdict {
	var all []report.Verdict
	if n, ok := r.ratio(); ok {
		all = append(all, report.Verdict{What: "daemon over kubelet", Target: fmt.Sprintf("<= %.1f", cpuTarget), Found: fmt.Sprintf("%.2f", n), Met: n <= cpuTarget})
	}
	writes := r.Ours.DaemonWrites + r.Ours.ManagerWrites
	return append(all,
		report.AtMost("lateness p99", r.Ours.LateP99, latenessTarget, report.Duration),
		report.Verdict{What: "writes a minute with nothing changing", Target: "0", Found: fmt.Sprintf("%.1f", writes), Met: writes == 0})
}

// findings are what is kept of a run.
type findings struct {
	report.Machine
	Kubelet string   `json:"kubelet"`
	Runtime string   `json:"runtime"`
	Images  []string `json:"images"`
	PerPod  int      `json:"perPod"`
	Notes   []string `json:"notes"`
	Results []result `json:"results"`
	// Overload is of more exec probes than the node can run; none if that was not done.
	Overload *overload `json:"overload,omitempty"`
}

// Print prints the tables.
func (r *findings) Print(out io.Writer) error {
	fmt.Fprintf(out, "kubelet %s, %s; %s\n\n", r.Kubelet, r.Runtime, &r.Machine)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "scenario\tprobes/s\tdaemon CPU\tof both: daemon\tkubelet\tratio\truntime CPU\tlate p50\tp99\twrites/min\tRSS\t")
	for _, one := range r.Results {
		both, kubelet, ratio := "-", "-", "-"
		if one.Both != nil {
			both = share(one.Both.Daemon - one.Idle.Daemon)
			kubelet = share(one.Both.Kubelet-one.Idle.Kubelet) + " ± " + share(one.Noise)
		}
		if n, ok := one.ratio(); ok {
			ratio = fmt.Sprintf("%.2f", n)
		}
		o := one.Ours
		fmt.Fprintf(table, "%s\t%.1f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.1f\t%s\t\n", one.Name, float64(o.Probes)/o.Window.Seconds(),
			share(o.Daemon-one.Idle.Daemon), both, kubelet, ratio, share(o.Runtime-one.Idle.Runtime),
			report.Duration(o.LateP50), report.Duration(o.LateP99), o.DaemonWrites+o.ManagerWrites, report.Bytes(o.RSS))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nscenario: KIND-NUMBER-PERIOD, %d probes in each pod; CPU: of one processor, above the same pods without probes; of both:\n"+
		"while kubelet has as many readiness probes, one of each container; ±: how far its use varies without probes; where that is as\n"+
		"large, there is no ratio; runtime: containerd, shims and the commands, in steps of 10 ms; writes: of daemon and manager while nothing changes\n\n", r.PerPod)
	for _, one := range r.Results {
		if f := one.Flips; f != nil {
			fmt.Fprintf(out, "%s, one probe turned each second: daemon %s of CPU, %.0f writes a minute by the daemon and %.0f by the manager, %.0f of Events\n",
				one.Name, share(f.Daemon-one.Idle.Daemon), f.DaemonWrites, f.ManagerWrites, f.EventWrites)
		}
	}
	if o := r.Overload; o != nil {
		fmt.Fprintf(out, "overload, %d exec probes each %s for %s: %.1f run a second, the first results of all after %s, late p50 %s p99 %s;\n"+
			"runtime %s of CPU, load average %.1f (%.1f before); %s\n", o.Probes, overloadPeriod, overloadWindow,
			float64(o.Sample.Probes)/o.Sample.Window.Seconds(), report.Duration(o.First), report.Duration(o.Sample.LateP50),
			report.Duration(o.Sample.LateP99), share(o.Sample.Runtime), o.Load, o.LoadBefore, o.Delayed)
	}
	for _, note := range r.Notes {
		fmt.Fprintln(out, note)
	}
	return nil
}

// Verdicts compare with the targets.
func (r *findings) Verdicts() report.Verdicts {
	var verdicts report.Verdicts
	for _, one := range r.Results {
		verdicts.Add(one.Name, one.verdicts()...)
	}
	if r.Overload != nil {
		verdicts.Add("overload", r.Overload.verdicts()...)
	}
	return verdicts
}

// share of a processor.
func share(cpu float64) string { return fmt.Sprintf("%.2f %%", 100*cpu) }

// Figures are what is compared between runs.
func (r *findings) Figures() []report.Figure {
	var all []report.Figure
	for _, one := range r.Results {
		all = append(all,
			report.Figure{Name: one.Name + "/late p99", Unit: "ns/op", Value: float64(one.Ours.LateP99)},
			report.Figure{Name: one.Name + "/RSS", Unit: "B", Value: float64(one.Ours.RSS)})
		if one.Both != nil {
			all = append(all, report.Figure{Name: one.Name + "/CPU beyond idle", Unit: "cores",
				Value: one.Both.Daemon - one.Idle.Daemon, Floor: one.Both.Kubelet - one.Idle.Kubelet})
		}
	}
	return all
}
