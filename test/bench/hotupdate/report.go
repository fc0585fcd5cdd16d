package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/refit-project/refit/test/bench/report"
)

// What is wanted.
const (
	maxOver  = 30 * time.Millisecond // over the floor at the smallest size
	maxRatio = 1.1                   // of the floor at the largest
	maxGrow  = 4 << 20               // of the peak beyond the peak of the smallest, bytes
)

// findings are what is kept of a run.
type findings struct {
	report.Machine
	FileSystem string    `json:"fileSystem"`
	Sizes      []outcome `json:"sizes"`
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

// times of one contender.
type times struct{ seen, answered []time.Duration }

func (t *times) add(one took) {
	t.seen = append(t.seen, one.seen)
	t.answered = append(t.answered, one.answered)
}

func (t *times) summary(name string) way {
	return way{Name: name, P50: report.Quantile(t.seen, .5), P99: report.Quantile(t.seen, .99), Answered: report.Quantile(t.answered, .5), Raw: t.seen}
}

// ratio of our median to the floor's.
func (o outcome) ratio() float64 { return float64(o.Ways[0].P50) / float64(o.Ways[1].P50) }

// Verdicts compare with the targets.
func (r *findings) Verdicts() report.Verdicts {
	var verdicts report.Verdicts
	small, large := r.Sizes[0], r.Sizes[len(r.Sizes)-1]
	over := small.Ways[0].P50 - small.Ways[1].P50
	var grown int64
	torn := 0
	for _, s := range r.Sizes {
		grown = max(grown, s.PeakRSS-small.PeakRSS)
		torn += s.Torn
	}
	verdicts.Add("hot update",
		report.AtMost(small.Size+", p50 over the floor", over, maxOver, report.Duration),
		report.AtMost(large.Size+", p50 to the floor", large.ratio(), maxRatio, report.Ratio),
		report.AtMost("peak of RSS, any size over "+small.Size, grown, maxGrow, report.Bytes),
		report.None("torn reads", torn))
	return verdicts
}

// Print prints the tables.
func (r *findings) Print(out io.Writer) error {
	fmt.Fprintf(out, "%s; %s\n\n", r.FileSystem, &r.Machine)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "size\tway\tn\tp50\tp99\tx floor\tanswered p50\tpeak RSS\ttorn reads\t")
	for _, s := range r.Sizes {
		for i, w := range s.Ways {
			memory, torn := "", ""
			if i == 0 {
				memory, torn = report.Bytes(s.PeakRSS), fmt.Sprintf("%d of %d", s.Torn, s.Reads)
			}
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%.2f\t%s\t%s\t%s\t\n", s.Size, w.Name, len(w.Raw), report.Duration(w.P50), report.Duration(w.P99),
				float64(w.P50)/float64(s.Ways[1].P50), report.Duration(w.Answered), memory, torn)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprint(out, "\np50, p99: from the request until the program's handler has seen the new file. The floor is \"curl, mv, kill\": it neither\n"+
		"computes a digest nor waits for the disk, and refit-sidecar does both; \"curl, sync, mv, kill\" waits for the disk, too.\n\n")
	return nil
}

// Figures are what is compared between runs.
func (r *findings) Figures() []report.Figure {
	var all []report.Figure
	for _, o := range r.Sizes {
		ours, floor := o.Ways[0], o.Ways[1]
		all = append(all,
			report.Figure{Name: o.Size + "/p50", Unit: "ns/op", Value: float64(ours.P50), Floor: float64(floor.P50)},
			report.Figure{Name: o.Size + "/p99", Unit: "ns/op", Value: float64(ours.P99), Floor: float64(floor.P99)},
			report.Figure{Name: o.Size + "/peak RSS", Unit: "B", Value: float64(o.PeakRSS)})
	}
	return all
}
