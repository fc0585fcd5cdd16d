package main

import (
	"bytes"
	"encoding/json"
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

// What is wanted.
const (
	maxOver  = 30 * time.Millisecond // over the floor at the smallest size
	maxRatio = 1.1                   // of the floor at the largest
	maxGrow  = 4 << 20               // of the peak beyond that of the smallest, bytes
)

// report is what is kept of a run.
type report struct {
	Time       time.Time `json:"time"`
	CPUs       int       `json:"cpus"`
	LoadBefore string    `json:"loadavgBefore"`
	LoadAfter  string    `json:"loadavgAfter"`
	FileSystem string    `json:"fileSystem"`
	Sizes      []outcome `json:"sizes"`
	Verdicts   []verdict `json:"verdicts"`
}

// outcome is of one size. The first of the ways is ours, the second the floor.
type outcome struct {
	Size    string `json:"size"`
	Bytes   int64  `json:"bytes"`
	Ways    []way  `json:"ways"`
	PeakRSS int64  `json:"peakRSSBytes"`
	Updates int    `json:"updatesUnderAReader"`
	Reads   int    `json:"reads"`
	Torn    int    `json:"tornReads"`
}

// way is how long one contender took, until the handler had run and until the caller knew.
type way struct {
	Name     string          `json:"name"`
	P50      time.Duration   `json:"p50Nanoseconds"`
	P99      time.Duration   `json:"p99Nanoseconds"`
	Answered time.Duration   `json:"answeredP50Nanoseconds"`
	Raw      []time.Duration `json:"rawNanoseconds"`
}

type verdict struct {
	What, Target, Found string
	Met                 bool
}

// times of one contender.
type times struct{ seen, answered []time.Duration }

func (t *times) add(one took) {
	t.seen = append(t.seen, one.seen)
	t.answered = append(t.answered, one.answered)
}

func (t *times) summary(name string) way {
	return way{Name: name, P50: quantile(t.seen, .5), P99: quantile(t.seen, .99), Answered: quantile(t.answered, .5), Raw: t.seen}
}

// quantile is the smallest value that at least the share q of all are no larger than: of few values, 0.99 is the largest.
func quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(1, int(math.Ceil(q*float64(len(sorted)))))-1]
}

// ratio of our median to the floor's.
func (o outcome) ratio() float64 { return float64(o.Ways[0].P50) / float64(o.Ways[1].P50) }

func (r *report) judge() {
	small, large := r.Sizes[0], r.Sizes[len(r.Sizes)-1]
	over := small.Ways[0].P50 - small.Ways[1].P50
	var grown int64
	torn := 0
	for _, s := range r.Sizes {
		grown = max(grown, s.PeakRSS-small.PeakRSS)
		torn += s.Torn
	}
	r.Verdicts = []verdict{
		{small.Size + ", p50 over the floor", "<= " + show(maxOver), show(over), over <= maxOver},
		{large.Size + ", p50 to the floor", fmt.Sprintf("<= %.2f x", maxRatio), fmt.Sprintf("%.2f x", large.ratio()), large.ratio() <= maxRatio},
		{"peak of RSS, any size over " + small.Size, "<= " + showBytes(maxGrow), showBytes(grown), grown <= maxGrow},
		{"torn reads", "0", fmt.Sprint(torn), torn == 0},
	}
}

func (r *report) print(out io.Writer) error {
	fmt.Fprintf(out, "%d CPUs %s, %s; loadavg %s before, %s after\n\n", r.CPUs, runtime.GOARCH, r.FileSystem, r.LoadBefore, r.LoadAfter)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "size\tway\tn\tp50\tp99\tx floor\tanswered p50\tpeak RSS\ttorn reads\t")
	for _, s := range r.Sizes {
		for i, w := range s.Ways {
			memory, torn := "", ""
			if i == 0 {
				memory, torn = showBytes(s.PeakRSS), fmt.Sprintf("%d of %d", s.Torn, s.Reads)
			}
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%.2f\t%s\t%s\t%s\t\n", s.Size, w.Name, len(w.Raw), show(w.P50), show(w.P99),
				float64(w.P50)/float64(s.Ways[1].P50), show(w.Answered), memory, torn)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprint(out, "\np50, p99: from the request until the program's handler has seen the new file. The floor is \"curl, mv, kill\": it neither\n"+
		"computes a digest nor waits for the disk, and refit-sidecar does both; \"curl, sync, mv, kill\" waits for the disk, too.\n\n")
	table = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\ttarget\tfound\t")
	for _, v := range r.Verdicts {
		word := "met"
		if !v.Met {
			word = "MISSED"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", v.What, v.Target, v.Found, word)
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
	for name, content := range map[string][]byte{"hotupdate.json": raw, "hotupdate.txt": table.Bytes()} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return fmt.Errorf("save report: %w", err)
		}
	}
	return nil
}

func show(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

func showBytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
