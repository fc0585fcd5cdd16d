// Command sidecarset counts what refit-manager writes and needs for a rollout of many SidecarSets, and for pods that become
// ready and not ready. Nodes and pods are simulated by kwok; that a container is replaced after its image has changed is
// reported by this program, as kubelet would: not ready, and ready a second later. make bench-sidecarset does all that is
// needed.
package main

import (
	"context"
	"errors"
	"flag"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/bench/fakenodes"
	"github.com/refit-project/refit/test/bench/report"
	"github.com/refit-project/refit/test/bench/testcluster"
)

const benchmark = "sidecarset"

func main() {
	b := &bench{}
	b.Flags(10000)
	flag.IntVar(&b.workloads, "workloads", 1000, "workloads of the pods")
	flag.IntVar(&b.sets, "sets", 100, "SidecarSets, each for as many of the workloads")
	flag.IntVar(&b.flips, "flips", 200, "pods that become not ready, and ready again")
	flag.Parse()
	testcluster.Main(benchmark, b.run)
}

type bench struct {
	fakenodes.Bench
	workloads, sets, flips int

	followed client.Reader // pods and SidecarSets
	restart  time.Duration // until refit-manager had taken in all pods
}

func (b *bench) check() error {
	if b.Nodes < 1 || b.sets < 1 || b.workloads%b.sets != 0 || b.Pods%b.workloads != 0 || b.Pods < 100 || b.flips < 1 {
		return errors.New("the pods must be at least 100 and a multiple of the workloads, and those a multiple of the SidecarSets")
	}
	return nil
}

func (b *bench) run(ctx context.Context) error {
	if err := b.check(); err != nil {
		return err
	}
	kept := &findings{Machine: report.Begin(), Nodes: b.Nodes, Pods: b.Pods, Workloads: b.workloads, SidecarSets: b.sets}
	return b.Run(ctx, fakenodes.Scenario{
		Benchmark: benchmark, Namespace: name, Scheme: v1beta1.AddToScheme, Follow: &v1beta1.SidecarSet{}, Clear: b.clear,
		Measure: func(ctx context.Context, followed cache.Cache) (report.Findings, error) {
			err := b.measure(ctx, followed)
			kept.Steps, kept.Flips, kept.Restart = b.Steps, b.Flips, b.restart
			return kept, err
		},
	})
}

func (b *bench) measure(ctx context.Context, followed cache.Cache) error {
	b.followed = followed
	return fakenodes.WithKubelets(ctx, b.Cluster.API, followed, b.scenario)
}
