// Package report is what every benchmark says in the same way: on which machine, how busy that was, what was found and
// whether that meets the target; as tables, and as JSON beside them.
//
// What is measured, and how, must stay out.
package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// Machine is where and when a benchmark ran.
type Machine struct {
	Time time.Time `json:"time"`
	CPUs int       `json:"cpus"`
	// Loop is how long one processor takes for a fixed computation, so that runs on different days can be compared.
	Loop       time.Duration `json:"loopNanoseconds"`
	LoadBefore string        `json:"loadavgBefore"`
	LoadAfter  string        `json:"loadavgAfter"`
}

// Begin notes the load before the first measurement, and how fast the machine is.
func Begin() Machine {
	return Machine{Time: time.Now(), CPUs: runtime.NumCPU(), LoadBefore: loadavg(), Loop: loop()}
}

// loop is the fastest of five SHA-256 sums of 16 MiB.
func loop() time.Duration {
	block := make([]byte, 1<<20)
	fastest := time.Duration(math.MaxInt64)
	for range 5 {
		start, sum := time.Now(), sha256.New()
		for range 16 {
			sum.Write(block)
		}
		sum.Sum(nil)
		fastest = min(fastest, time.Since(start))
	}
	return fastest
}

// End notes the load after the last one.
func (m *Machine) End() { m.LoadAfter = loadavg() }

// String is the first line of a table.
func (m *Machine) String() string {
	return fmt.Sprintf("%d CPUs %s, SHA-256 of 16 MiB in %s; loadavg %s before, %s after", m.CPUs, runtime.GOARCH, Duration(m.Loop), m.LoadBefore, m.LoadAfter)
}

func (m *Machine) ran() *Machine { return m }

func loadavg() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(content))
}

// Findings are all that a run has found. They embed Machine.
type Findings interface {
	// End notes the load after the last measurement.
	End()
	// Print prints the tables, without the verdicts.
	Print(out io.Writer) error
	Figures() []Figure
	Verdicts() Verdicts

	ran() *Machine
}

// Folder of the reports, in the checkout.
const Folder = "dist/bench"

// Finish prints what was found and saves it in Folder.
func Finish(benchmark string, found Findings) error {
	fmt.Println()
	return errors.Join(write(os.Stdout, found), Save(Folder, benchmark, found))
}

func write(out io.Writer, found Findings) error {
	var tables bytes.Buffer
	if err := found.Print(&tables); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "%s\n\n", bytes.TrimRight(tables.Bytes(), "\n")); err != nil {
		return err
	}
	return found.Verdicts().Print(out)
}

// SummarySuffix is what the file of a Summary is called after the benchmark.
const SummarySuffix = ".verdicts.json"

// Summary is what a run comes to: the content of BENCHMARK.verdicts.json.
type Summary struct {
	Benchmark string   `json:"benchmark"`
	Machine   Machine  `json:"machine"`
	Verdicts  Verdicts `json:"verdicts"`
}

// Save keeps a report in folder: the tables as BENCHMARK.txt, all of it as BENCHMARK.json, its Summary as
// BENCHMARK.verdicts.json; the figures for benchstat as BENCHMARK.bench and as a picture in BENCHMARK.svg.
func Save(folder, benchmark string, found Findings) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("save report: %w", err)
	}
	var text bytes.Buffer
	if err := write(&text, found); err != nil {
		return fmt.Errorf("save report: %w", err)
	}
	files := map[string][]byte{".txt": text.Bytes()}
	for name, value := range map[string]any{".json": found, SummarySuffix: Summary{benchmark, *found.ran(), found.Verdicts()}} {
		raw, err := json.MarshalIndent(value, "", " ")
		if err != nil {
			return fmt.Errorf("save report: %w", err)
		}
		files[name] = raw
	}
	if figures := found.Figures(); len(figures) > 0 {
		files[".bench"], files[".svg"] = benchstat(benchmark, figures), plot(benchmark, figures)
	}
	for ending, content := range files {
		if err := os.WriteFile(filepath.Join(folder, benchmark+ending), content, 0o644); err != nil {
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
