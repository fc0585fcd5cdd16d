// Command signal measures how long it takes to find one process among many and to signal it: package signal
// against pkill -f of procps and a plain loop over prometheus/procfs. All take turns in one run, and every
// signal is confirmed by the process that received it, outside of the time measured.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	ossignal "os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/refit-project/refit/test/bench/report"
)

const roleEnv = "REFIT_BENCH_ROLE"

func main() {
	if os.Getenv(roleEnv) == "target" {
		beTarget()
		return
	}
	counts := flag.String("counts", "100,600,2000,10000", "processes in all, ascending")
	rounds := flag.Int("rounds", 15, "measured rounds for each count, after one that is dropped")
	flag.Parse()
	ctx, stop := ossignal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	found := findings{Machine: report.Begin()}
	var err error
	found.Results, err = run(ctx, *counts, *rounds)
	stop()
	found.End()
	if err == nil {
		err = report.Finish("signal", &found)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-signal:", err)
		os.Exit(1)
	}
}

// beTarget writes one line per SIGHUP.
func beTarget() {
	hup := make(chan os.Signal, 1)
	ossignal.Notify(hup, syscall.SIGHUP)
	fmt.Println("ready")
	for range hup {
		fmt.Println("SIGHUP")
	}
}

// result is one contender among one number of processes. Ratio compares medians with pkill's.
type result struct {
	Processes int           `json:"processes"`
	Name      string        `json:"name"`
	Median    time.Duration `json:"medianNanoseconds"`
	Low       time.Duration `json:"lowerQuartileNanoseconds"`
	High      time.Duration `json:"upperQuartileNanoseconds"`
	Ratio     float64       `json:"ratioToPkill"`
}

func run(ctx context.Context, counts string, rounds int) (results []result, err error) {
	// The population dies with the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dir, err := os.MkdirTemp("", "refit-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	population, err := newPopulation(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, population.stop()) }()
	title := "refit-bench-target-" + strconv.Itoa(os.Getpid())
	heard, err := startTarget(ctx, title)
	if err != nil {
		return nil, err
	}
	for word := range strings.SplitSeq(counts, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("counts: %w", err)
		}
		if err := population.grow(n); err != nil {
			return nil, err
		}
		batch, err := measure(ctx, title, heard, rounds)
		if err != nil {
			return nil, fmt.Errorf("%d processes: %w", n, err)
		}
		for i := range batch {
			batch[i].Processes = n
		}
		results = append(results, batch...)
	}
	return results, nil
}

// startTarget returns a function that waits for the next SIGHUP to arrive.
func startTarget(ctx context.Context, title string) (func() error, error) {
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = []string{title}
	cmd.Env = append(os.Environ(), roleEnv+"=target")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	heard := func() error {
		if !lines.Scan() {
			return fmt.Errorf("target ended: %w", lines.Err())
		}
		return nil
	}
	return heard, heard()
}

// measure lets the contenders take turns; the order moves on by one each round.
func measure(ctx context.Context, title string, heard func() error, rounds int) ([]result, error) {
	all, err := contenders(ctx, title)
	if err != nil {
		return nil, err
	}
	took := make([][]time.Duration, len(all))
	for round := range rounds + 1 {
		for i := range all {
			i = (i + round) % len(all)
			start := time.Now()
			if err := all[i].run(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", all[i].name, err)
			}
			elapsed := time.Since(start)
			if err := heard(); err != nil {
				return nil, err
			}
			if round > 0 {
				took[i] = append(took[i], elapsed)
			}
		}
	}
	results := make([]result, len(all))
	for i, c := range all {
		slices.Sort(took[i])
		at := func(q int) time.Duration { return took[i][(len(took[i])-1)*q/4] }
		results[i] = result{Name: c.name, Median: at(2), Low: at(1), High: at(3)}
	}
	for i := range results {
		results[i].Ratio = float64(results[i].Median) / float64(results[1].Median)
	}
	return results, nil
}

// findings are what is kept of a run.
type findings struct {
	report.Machine
	Results []result `json:"results"`
}

// Print prints the table.
func (f *findings) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n\n", &f.Machine)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "processes\tway\tmedian\tquartiles\tx pkill\t")
	for _, r := range f.Results {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s - %s\t%.3f\t\n", r.Processes, r.Name, r.Median.Round(time.Microsecond),
			r.Low.Round(time.Microsecond), r.High.Round(time.Microsecond), r.Ratio)
	}
	return table.Flush()
}

// Verdicts are none: the ratios are in the table.
func (f *findings) Verdicts() report.Verdicts { return nil }

// Figures are what is compared between runs; the floor is pkill.
func (f *findings) Figures() []report.Figure {
	var all []report.Figure
	for _, r := range f.Results {
		all = append(all, report.Figure{
			Name: fmt.Sprintf("%d processes/%s", r.Processes, r.Name), Unit: "ns/op", Value: float64(r.Median), Floor: float64(r.Median) / r.Ratio,
		})
	}
	return all
}
