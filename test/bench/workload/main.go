// Command workload times the update of a Deployment's image in place, by an InPlaceUpdatePolicy, against the rolling update of the same
// Deployment by its own controller: both with the new image on the nodes, both in one run. make bench-workload does all that is
// needed.
package main

import (
	"context"
	"flag"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/bench/report"
	"github.com/refit-project/refit/test/bench/testcluster"
)

func main() {
	pods := flag.String("pods", "10,40", "pods of the Deployment, one measurement each")
	rounds := flag.Int("rounds", 3, "updates of each kind")
	flag.Parse()
	benchmark := testcluster.Benchmark{Name: "workload", Measure: func(ctx context.Context, c *testcluster.Cluster) (report.Findings, error) {
		counts, err := testcluster.Numbers("-pods", *pods)
		if err != nil {
			return nil, err
		}
		return run(ctx, &bench{Cluster: c}, counts, *rounds)
	}}
	benchmark.Types = append(benchmark.Types, appsv1.AddToScheme, v1alpha1.AddToScheme)
	benchmark.Main()
}

// run measures all ways with each number of pods.
func run(ctx context.Context, b *bench, counts []int, rounds int) (report.Findings, error) {
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	found := &findings{Machine: report.Begin(), Rounds: rounds}
	for _, n := range counts {
		for _, way := range ways {
			b.Say("%d pods, %s, %d rounds", n, way.name, rounds)
			measured, err := b.measure(ctx, way, n, rounds)
			if err != nil {
				return nil, err
			}
			found.Results = append(found.Results, measured)
		}
	}
	return found, nil
}
