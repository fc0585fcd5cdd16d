// Command inplace times in-place updates of pods, by the library that kubectl-refit uses, against deleting and recreating
// the same pods: both with the new image on the node, both in one run. make bench-inplace does all that is needed.
package main

import (
	"context"
	"flag"
	"strings"

	"github.com/refit-project/refit/test/bench/report"
	"github.com/refit-project/refit/test/bench/testcluster"
)

func main() {
	pods := flag.String("pods", "1,10,40", "how many pods at once, one measurement each")
	only := flag.String("kinds", "", "only kinds with this text in their name")
	rounds := flag.Int("rounds", 3, "measurements of each kind")
	flag.Parse()
	benchmark := testcluster.Benchmark{Name: "inplace", Measure: func(ctx context.Context, c *testcluster.Cluster) (report.Findings, error) {
		return run(ctx, c, *pods, *only, *rounds)
	}}
	benchmark.Main()
}

func run(ctx context.Context, in *testcluster.Cluster, pods, only string, rounds int) (report.Findings, error) {
	counts, err := testcluster.Numbers("-pods", pods)
	if err != nil {
		return nil, err
	}
	c, err := openCluster(in)
	if err != nil {
		return nil, err
	}
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	found := &findings{Machine: report.Begin(), Rounds: rounds}
	for _, n := range counts {
		for _, kind := range kinds {
			if !strings.Contains(kind.name, only) {
				continue
			}
			c.Say("%s, %d pods, %d rounds", kind.name, n, rounds)
			measured, err := c.measure(ctx, kind, n, rounds)
			if err != nil {
				return nil, err
			}
			found.Results = append(found.Results, measured)
		}
	}
	return found, nil
}
