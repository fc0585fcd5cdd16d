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

// report is what is kept of a run.
type report struct {
	Time       time.Time `json:"time"`
	CPUs       int       `json:"cpus"`
	LoadBefore string    `json:"loadavgBefore"`
	LoadAfter  string    `json:"loadavgAfter"`
	Kubelet    string    `json:"kubelet"`
	Runtime    string    `json:"runtime"`
	Images     []string  `json:"images"`
	Pairs      int       `json:"pairs"`
	Rounds     int       `json:"rounds"`
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
	fmt.Fprintln(table, "scenario\tn\trefit p50\tp99\tlast\tfloor p50\tp99\tlast\tnoise\tratio\twrites\tevents\tCRI calls\tRSS\tpeak\tCPU\t")
	for _, one := range r.Results {
		o, f, c := one.Ours, one.Floor, one.Cost
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.2f\t%.2f\t%.2f\t%.1f\t%s\t%s\t%s\t\n", one.Name, o.Runs,
			show(o.P50), show(o.P99), show(o.Last), show(f.P50), show(f.P99), show(f.Last), show(f.Spread), one.Ratio,
			c.WritesEach, c.EventsEach, c.CallsEach, showBytes(c.RSS), showBytes(c.PeakRSS), show(c.CPU))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprint(out, "\nlast: mean of the rounds, noise: how far the floor's rounds differ; writes, events, CRI calls: per request\n\n")
	table = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "target\t\t\tfound\t")
	for _, one := range r.Results {
		for _, v := range one.Verdicts {
			outcome := "met"
			if !v.Met {
				outcome = "MISSED"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", one.Name, v.What, v.Target, v.Found, outcome)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, one := range r.Results {
		for _, note := range one.Notes {
			fmt.Fprintf(out, "\n%s: %s", one.Name, note)
		}
	}
	fmt.Fprintln(out)
	return nil
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
	for name, content := range map[string][]byte{"crr.json": raw, "crr.txt": table.Bytes()} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return fmt.Errorf("save report: %w", err)
		}
	}
	return nil
}

func show(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d.Abs() < time.Second:
		return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
	default:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
}

func showBytes(n uint64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
