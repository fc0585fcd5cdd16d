// Command pull times image pulls by ImagePullJobs against `ctr images pull` of the same images, from one registry and in one
// run. make bench-pull does all that is needed.
package main

import (
	"context"
	"errors"
	"flag"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/bench/report"
	"github.com/refit-project/refit/test/bench/testcluster"
)

func main() {
	sizes := flag.String("sizes", "10,20,30,50,80,120,200,300,400,500", "sizes of the images in MB")
	parallel := flag.String("parallel", "1,3,5", "how many are pulled at once, one measurement each")
	rounds := flag.Int("rounds", 3, "measurements of each kind")
	flag.Parse()
	benchmark := testcluster.Benchmark{
		Name: "pull", Types: []func(*runtime.Scheme) error{v1beta1.AddToScheme, appsv1.AddToScheme},
		Measure: func(ctx context.Context, c *testcluster.Cluster) (report.Findings, error) {
			return run(ctx, c, *sizes, *parallel, *rounds)
		},
	}
	benchmark.Main()
}

func run(ctx context.Context, in *testcluster.Cluster, sizes, parallel string, rounds int) (kept report.Findings, err error) {
	megabytes, err := testcluster.Numbers("-sizes", sizes)
	if err != nil {
		return nil, err
	}
	ways, err := testcluster.Numbers("-parallel", parallel)
	if err != nil {
		return nil, err
	}
	registry, err := serve(ctx, megabytes)
	if err != nil {
		return nil, err
	}
	defer registry.close()
	c := &cluster{Cluster: in, registry: registry}
	defer func() { err = errors.Join(err, c.tearDown(context.WithoutCancel(ctx))) }()
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	found := &findings{Machine: report.Begin(), Rounds: rounds, Megabytes: megabytes}
	for _, n := range ways {
		c.Say("%d at a time, %d rounds", n, rounds)
		measured, err := c.measure(ctx, n, rounds)
		if err != nil {
			return nil, err
		}
		found.Results = append(found.Results, measured)
	}
	return found, nil
}
