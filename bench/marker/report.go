package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"
)

// step is one change and what the manager did for it.
type step struct {
	Name string `json:"name"`
	// Changes are the objects that cannot be as they are after it without a write each; Writes those that there were,
	// Events and the marker's status among them.
	Changes int `json:"changes"`
	Writes  int `json:"apiWrites"`
	Reads   int `json:"apiReads"`
	// Given is how long the benchmark took to bring the change about, Converged how long until all was as it is to be;
	// both from the begin.
	Given     time.Duration `json:"givenNanoseconds"`
	Converged time.Duration `json:"convergedNanoseconds"`
	CPU       time.Duration `json:"managerCPUNanoseconds"`
	RSS       uint64        `json:"managerRSSBytes"`
	PeakRSS   uint64        `json:"managerPeakRSSBytes"`
}

// report is what is kept of a run.
type report struct {
	Time       time.Time `json:"time"`
	CPUs       int       `json:"cpus"`
	LoadBefore string    `json:"loadavgBefore"`
	LoadAfter  string    `json:"loadavgAfter"`
	Nodes      int       `json:"nodes"`
	Pods       int       `json:"pods"`
	Steps      []step    `json:"steps"`
}

func loadavg() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(content))
}

func (r *report) print(out io.Writer) error {
	fmt.Fprintf(out, "%d nodes and %d pods, played by kwok; %d CPUs, loadavg %s before, %s after\n\n", r.Nodes, r.Pods, r.CPUs, r.LoadBefore, r.LoadAfter)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "step\tchanges\twrites\tratio\treads\tgiven\tconverged\tCPU\tRSS\tpeak\t")
	for _, s := range r.Steps {
		ratio := "-"
		if s.Changes > 0 {
			ratio = fmt.Sprintf("%.3f", float64(s.Writes)/float64(s.Changes))
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%d\t%s\t%s\t%s\t%.1f MiB\t%.1f MiB\t\n", s.Name, s.Changes, s.Writes, ratio, s.Reads,
			show(s.Given), show(s.Converged), show(s.CPU), float64(s.RSS)/(1<<20), float64(s.PeakRSS)/(1<<20))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, "\nchanges: objects that have to be written; writes: all requests of refit-manager that are no reads, Events and the status of the\n"+
		"marker among them; given: until the benchmark has made the change; converged: until everything follows it\n")
	return err
}

func (r *report) save(folder string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	file := filepath.Join(folder, "marker-"+r.Time.UTC().Format("20060102-150405")+".json")
	if err := os.WriteFile(file, append(content, '\n'), 0o644); err != nil {
		return err
	}
	fmt.Println("\nkept in", file)
	return nil
}

func show(d time.Duration) string { return d.Round(10 * time.Millisecond).String() }
