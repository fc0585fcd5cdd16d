package fakenodes

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/test/bench/report"
	"github.com/refit-project/refit/test/bench/testcluster"
)

// flipRatio is the target for the cost of a flip with most pods to that with fewest: it does not depend on how many there are.
const flipRatio = 2

// Flip is what it costs the manager, with so many pods, that one becomes not ready, or ready again.
type Flip struct {
	Pods int           `json:"pods"`
	CPU  time.Duration `json:"cpuPerFlipNanoseconds"`
}

// Growth are pods that a benchmark creates in stages.
type Growth struct {
	Flips int // pods that become not ready, and ready again, in each stage
	// Populate creates the pods from the first to before the last.
	Populate func(ctx context.Context, first, last int) error
	// Pods returns the names of all pods.
	Pods func(ctx context.Context) ([]types.NamespacedName, error)
	// Counted returns a function that reports whether the statuses count so many pods, all of them ready.
	Counted func(pods int) func(context.Context) (bool, error)
}

// Grow creates 100 pods, then 1,000 and then all, and measures in each stage what readiness flips cost.
func (b *Bench) Grow(ctx context.Context, g Growth) error {
	have := 0
	for _, pods := range []int{100, 1000, b.Pods} {
		if pods = min(pods, b.Pods); pods <= have {
			continue
		}
		first := have
		have = pods
		err := b.Step(ctx, fmt.Sprintf("pods up to %d", pods), 0, func(ctx context.Context) error { return g.Populate(ctx, first, pods) }, g.Counted(pods))
		if err != nil {
			return err
		}
		if err := b.flip(ctx, &g, pods); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bench) flip(ctx context.Context, g *Growth, pods int) error {
	names, err := g.Pods(ctx)
	if err != nil {
		return err
	}
	flips := min(g.Flips, len(names))
	err = b.Step(ctx, fmt.Sprintf("%d pods of %d flip twice", flips, pods), 0, func(ctx context.Context) error {
		for _, ready := range []bool{false, true} {
			err := testcluster.Each(ctx, flips, func(ctx context.Context, i int) error { return PatchStatus(ctx, b.Cluster.API, names[i], nil, ready) })
			if err != nil {
				return err
			}
		}
		return nil
	}, g.Counted(pods))
	if err != nil {
		return err
	}
	b.Flips = append(b.Flips, Flip{Pods: pods, CPU: b.Steps[len(b.Steps)-1].CPU / time.Duration(2*flips)})
	return nil
}

// PrintFlips prints what flips cost as a table.
func PrintFlips(out io.Writer, flips []Flip) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "pods\tCPU for a readiness flip\t")
	for _, flip := range flips {
		fmt.Fprintf(table, "%d\t%s\t\n", flip.Pods, report.Duration(flip.CPU))
	}
	return table.Flush()
}

// JudgeFlips adds whether the cost of a flip depends on the number of pods.
func JudgeFlips(verdicts report.Verdicts, flips []Flip) {
	n := len(flips)
	if n < 2 {
		return
	}
	ratio := float64(flips[n-1].CPU) / float64(max(flips[0].CPU, 1))
	verdicts.Add("readiness flip", report.Verdict{
		What: fmt.Sprintf("%d pods against %d", flips[n-1].Pods, flips[0].Pods), Target: fmt.Sprintf("<= %d times", flipRatio), Found: fmt.Sprintf("%.2f times", ratio), Met: ratio <= flipRatio,
	})
}
