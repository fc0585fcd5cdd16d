// Command policies counts what refit-manager writes and needs for the update of a workload with thousands of pods by an
// InPlaceUpdatePolicy, and for pods that become ready and not ready. Nodes and pods are simulated by kwok; that a container is
// replaced after its image has changed is reported by this program, as kubelet would. make bench-policies does all that is needed.
package main

import (
	"context"
	"errors"
	"flag"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/bench/fakenodes"
	"github.com/refit-project/refit/test/bench/report"
	"github.com/refit-project/refit/test/bench/testcluster"
)

const benchmark = "policies"

func main() {
	b := &bench{}
	b.Flags(10000)
	flag.IntVar(&b.flips, "flips", 200, "pods that become not ready, and ready again")
	flag.Parse()
	testcluster.Main(benchmark, b.run)
}

type bench struct {
	fakenodes.Bench
	flips int

	followed client.Reader // pods and policies
}

func (b *bench) run(ctx context.Context) error {
	if b.Nodes < 1 || b.Pods < 100 || b.flips < 1 || b.flips > b.Pods {
		return errors.New("there must be at least 100 pods, a node, and no more flips than pods")
	}
	kept := &findings{Machine: report.Begin(), Nodes: b.Nodes, Pods: b.Pods}
	return b.Run(ctx, fakenodes.Scenario{
		Benchmark: benchmark, Namespace: name, Scheme: v1alpha1.AddToScheme, Follow: &v1alpha1.InPlaceUpdatePolicy{}, Clear: b.clear,
		Measure: func(ctx context.Context, followed cache.Cache) (report.Findings, error) {
			err := b.measure(ctx, followed)
			kept.Steps, kept.Flips = b.Steps, b.Flips
			return kept, err
		},
	})
}

func (b *bench) measure(ctx context.Context, followed cache.Cache) error {
	b.followed = followed
	return fakenodes.WithKubelets(ctx, b.Cluster.API, followed, b.scenario)
}
