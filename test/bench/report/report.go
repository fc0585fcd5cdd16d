// Package report is what every benchmark says in the same way: on which machine, how busy that was, what was found and
// whether that meets the target; as a table, and as JSON beside it.
//
// What is measured, and how, must stay out.
package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

// Machine is where and when a benchmark ran.
type Machine struct {
	Time       time.Time `json:"time"`
	CPUs       int       `json:"cpus"`
	LoadBefore string    `json:"loadavgBefore"`
	LoadAfter  string    `json:"loadavgAfter"`
}

// Begin notes the load before the first measurement.
func Begin() Machine {
	return Machine{Time: time.Now(), CPUs: runtime.NumCPU(), LoadBefore: loadavg()}
}

// End notes the load after the last one.
func (m *Machine) End() { m.LoadAfter = loadavg() }

// String is the first line of a table.
func (m *Machine) String() string {
	return fmt.Sprintf("%d CPUs %s; loadavg %s before, %s after", m.CPUs, runtime.GOARCH, m.LoadBefore, m.LoadAfter)
}

func loadavg() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(content))
}

// Verdict compares one figure with its target.
type Verdict struct {
	What   string `json:"what"`
	Target string `json:"target"`
	Found  string `json:"found"`
	Met    bool   `json:"met"`
}

// AtMost is the verdict on a figure that should be no larger than most.
func AtMost[T cmp.Ordered](what string, found, most T, text func(T) string) Verdict {
	return Verdict{What: what, Target: "<= " + text(most), Found: text(found), Met: found <= most}
}

// None is the verdict on a number that should be 0.
func None(what string, found int) Verdict {
	return Verdict{What: what, Target: "0", Found: fmt.Sprint(found), Met: found == 0}
}

// Verdicts prints a table of verdicts by what they are about.
type Verdicts struct{ table *tabwriter.Writer }

// NewVerdicts prints to out.
func NewVerdicts(out io.Writer) Verdicts {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "target\t\t\tfound\t")
	return Verdicts{table}
}

// Add prints the verdicts about one thing.
func (v Verdicts) Add(about string, all ...Verdict) {
	for _, one := range all {
		outcome := "met"
		if !one.Met {
			outcome = "MISSED"
		}
		fmt.Fprintf(v.table, "%s\t%s\t%s\t%s\t%s\n", about, one.What, one.Target, one.Found, outcome)
	}
}

// Flush ends the table.
func (v Verdicts) Flush() error { return v.table.Flush() }

// Findings are all that a run has found.
type Findings interface {
	// End notes the load after the last measurement.
	End()
	Print(out io.Writer) error
	Figures() []Figure
}

// folder of the reports, in the checkout.
const folder = "dist/bench"

// Finish prints what was found and saves it in dist/bench.
func Finish(benchmark string, found Findings) error {
	fmt.Println()
	return errors.Join(found.Print(os.Stdout), Save(folder, benchmark, found, found.Print, found.Figures()...))
}

// Save keeps a report in folder: what table prints as name.txt, all of it as name.json; the figures for benchstat as
// name.bench and as a picture in name.svg.
func Save(folder, name string, report any, table func(io.Writer) error, figures ...Figure) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("save report: %w", err)
	}
	raw, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		return fmt.Errorf("save report: %w", err)
	}
	var text bytes.Buffer
	if err := table(&text); err != nil {
		return fmt.Errorf("save report: %w", err)
	}
	files := map[string][]byte{name + ".json": raw, name + ".txt": text.Bytes()}
	if len(figures) > 0 {
		files[name+".bench"], files[name+".svg"] = benchstat(name, figures), plot(name, figures)
	}
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(folder, file), content, 0o644); err != nil {
			return fmt.Errorf("save report: %w", err)
		}
	}
	return nil
}

// Quantile is the smallest value that at least the share q of all are no larger than (nearest rank). Of 30 values the
// quantile 0.99 is the largest.
func Quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// Duration with as many digits as can mean something.
func Duration(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d.Abs() < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d.Abs() < time.Second:
		return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
	default:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
}

// Ratio is a multiple of something.
func Ratio(r float64) string { return fmt.Sprintf("%.2f x", r) }

// Bytes in MiB.
func Bytes[N int | int64 | uint64](n N) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
