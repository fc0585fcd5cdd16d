// Command marker counts what refit-manager writes for one PodProbeMarker on a cluster of nodes and pods that kwok
// simulates: the writes have to be proportional to what has changed. The reports of the daemons are simulated by the
// benchmark itself. It has to run inside the cluster's network; make bench-marker does all that is needed.
package main

import (
	"context"
	"errors"
	"flag"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/test/bench/fakenodes"
	"github.com/refit-project/refit/test/bench/report"
	"github.com/refit-project/refit/test/bench/testcluster"
)

const benchmark = "marker"

func main() {
	b := &bench{}
	b.Flags(5000)
	flag.IntVar(&b.flips, "flips", 100, "pods that change their state")
	flag.Parse()
	testcluster.Main(benchmark, b.run)
}

type bench struct {
	fakenodes.Bench
	flips int

	followed client.Reader // pods and NodePodProbes
}

func (b *bench) run(ctx context.Context) error {
	if b.Nodes < 1 || b.Pods < b.Nodes || b.flips > b.Nodes {
		return errors.New("there must be a pod for each node, and a node for each flip")
	}
	kept := &findings{Machine: report.Begin(), Nodes: b.Nodes, Pods: b.Pods}
	return b.Run(ctx, fakenodes.Scenario{
		Benchmark: benchmark, Namespace: namespace, Scheme: v1alpha1.AddToScheme, Follow: &v1alpha1.NodePodProbe{}, Clear: b.clear,
		Measure: func(ctx context.Context, followed cache.Cache) (report.Findings, error) {
			b.followed = followed
			err := b.scenario(ctx)
			kept.Steps = b.Steps
			return kept, err
		},
	})
}
