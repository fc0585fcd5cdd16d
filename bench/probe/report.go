package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"text/tabwriter"
	"time"
)

// result of one scenario: the same pods without probes, with ours, and with kubelet's if that was done.
type result struct {
	scenario scenario
	Name     string  `json:"name"`
	Idle     sample  `json:"idle"`
	Ours     sample  `json:"ours"`
	Flips    *sample `json:"flips,omitempty"`
	Kubelet  *sample `json:"kubelet,omitempty"`
}

// ratio is the daemon's CPU over what kubelet's probes cost it, both above what they use without probes.
func (r result) ratio() (float64, bool) {
	if r.Kubelet == nil {
		return 0, false
	}
	floor := r.Kubelet.Kubelet - r.Idle.Kubelet
	return (r.Ours.Daemon - r.Idle.Daemon) / floor, floor > 0
}

// report is what is kept of a run.
type report struct {
	Time       time.Time `json:"time"`
	CPUs       int       `json:"cpus"`
	LoadBefore string    `json:"loadavgBefore"`
	LoadAfter  string    `json:"loadavgAfter"`
	Kubelet    string    `json:"kubelet"`
	Runtime    string    `json:"runtime"`
	Images     []string  `json:"images"`
	Notes      []string  `json:"notes"`
	Results    []result  `json:"results"`
}

func loadavg() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(content))
}

func (r *report) print(out io.Writer) error {
	fmt.Fprintf(out, "%d CPUs %s, kubelet %s, %s; loadavg %s before, %s after\n\n", r.CPUs, runtime.GOARCH, r.Kubelet, r.Runtime, r.LoadBefore, r.LoadAfter)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "scenario\tprobes/s\tdaemon CPU\tkubelet CPU\tratio\truntime CPU\tby kubelet\tlate p50\tp99\twrites/min\tRSS\t")
	for _, one := range r.Results {
		kubelet, byKubelet, ratio := "-", "-", "-"
		if one.Kubelet != nil {
			kubelet, byKubelet = share(one.Kubelet.Kubelet-one.Idle.Kubelet), share(one.Kubelet.Runtime-one.Idle.Runtime)
		}
		if n, ok := one.ratio(); ok {
			ratio = fmt.Sprintf("%.2f", n)
		}
		o := one.Ours
		fmt.Fprintf(table, "%s\t%.1f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.1f\t%.1f MiB\t\n", one.Name, float64(o.Probes)/o.Window.Seconds(),
			share(o.Daemon-one.Idle.Daemon), kubelet, ratio, share(o.Runtime-one.Idle.Runtime), byKubelet,
			show(o.LateP50), show(o.LateP99), o.DaemonWrites+o.ManagerWrites, float64(o.RSS)/(1<<20))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nscenario: KIND-NUMBER-PERIOD, %d probes in each pod; CPU: of one processor, above the same pods without probes (kubelet and\nruntime: the lower of before and after);\n"+
		"kubelet: as many readiness probes, one of each container; runtime: containerd, shims and the commands;\n"+
		"writes: of daemon and manager while nothing changes; CPU times have a resolution of 10 ms in the window\n\n", perPod)
	for _, one := range r.Results {
		if f := one.Flips; f != nil {
			fmt.Fprintf(out, "%s, one probe turned each second: daemon %s of CPU, %.0f writes a minute by the daemon and %.0f by the manager, %.0f of Events\n",
				one.Name, share(f.Daemon-one.Idle.Daemon), f.DaemonWrites, f.ManagerWrites, f.EventWrites)
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintln(out, note)
	}
	fmt.Fprintln(out)
	return r.verdicts(out)
}

// verdicts compares with the targets.
func (r *report) verdicts(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "target\t\t\tfound\t")
	say := func(name, what, want, found string, met bool) {
		outcome := "met"
		if !met {
			outcome = "MISSED"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", name, what, want, found, outcome)
	}
	for _, one := range r.Results {
		if n, ok := one.ratio(); ok {
			say(one.Name, "daemon over kubelet", fmt.Sprintf("<= %.1f", cpuTarget), fmt.Sprintf("%.2f", n), n <= cpuTarget)
		}
		say(one.Name, "lateness p99", "<= "+show(latenessTarget), show(one.Ours.LateP99), one.Ours.LateP99 <= latenessTarget)
		writes := one.Ours.DaemonWrites + one.Ours.ManagerWrites
		say(one.Name, "writes a minute with nothing changing", "0", fmt.Sprintf("%.1f", writes), writes == 0)
	}
	return table.Flush()
}

// save keeps the table and the raw data.
func (r *report) save(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("save report: %w", err)
	}
	raw, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("save report: %w", err)
	}
	var table bytes.Buffer
	if err := r.print(&table); err != nil {
		return fmt.Errorf("save report: %w", err)
	}
	for name, content := range map[string][]byte{"probe.json": raw, "probe.txt": table.Bytes()} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return fmt.Errorf("save report: %w", err)
		}
	}
	return nil
}

func show(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// share of a processor.
func share(cpu float64) string { return fmt.Sprintf("%.1f %%", 100*cpu) }
