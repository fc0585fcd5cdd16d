package fakenodes

import (
	"context"
	"errors"
	"flag"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/bench/report"
	"github.com/refit-project/refit/test/bench/testcluster"
)

// tidyTimeout bounds the removal of what a benchmark has created, also after an interrupt.
const tidyTimeout = 10 * time.Minute

// Flags adds the flags that benchmarks have in common.
func (b *Bench) Flags(pods int) {
	flag.IntVar(&b.Nodes, "nodes", 500, "fake nodes")
	flag.IntVar(&b.Pods, "pods", pods, "fake pods")
	flag.DurationVar(&b.Quiet, "quiet", 30*time.Second, "how long to look that nothing is written when nothing changes")
	flag.StringVar(&b.bin, "bin", "dist/bin", "`directory` of refit-manager and kwok")
	flag.StringVar(&b.stages, "stages", "", "`directory` kustomize/stage of kwok: what its nodes and pods go through")
}

// Scenario is what one benchmark measures.
type Scenario struct {
	// Benchmark is its name in bench; Namespace the name of its namespace and of the label of its nodes.
	Benchmark, Namespace string
	// Scheme adds the types of Refit's API that it uses.
	Scheme func(*runtime.Scheme) error
	// Follow is the kind of objects that are read from a cache, as pods are.
	Follow client.Object
	// Clear removes what a run has created.
	Clear func(context.Context) error
	// Measure runs the steps.
	Measure func(ctx context.Context, followed cache.Cache) (report.Findings, error)
}

// Run prepares the cluster, starts kwok and refit-manager, measures, and removes what was created.
func (b *Bench) Run(ctx context.Context, s Scenario) (err error) {
	where, err := testcluster.Find(s.Benchmark)
	if err != nil {
		return err
	}
	if b.Cluster, err = Open(s.Namespace, where.Kubeconfig, where.State, s.Scheme); err != nil {
		return err
	}
	defer func() {
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
		defer cancel()
		b.Say("tidying up")
		err = errors.Join(err, s.Clear(tidy), b.Cluster.Restore(tidy))
	}()
	if err := s.Clear(ctx); err != nil {
		return err
	}
	if err := b.Cluster.Prepare(ctx); err != nil {
		return err
	}
	following, end := context.WithCancel(ctx)
	defer end()
	followed, err := b.Cluster.Follow(following, s.Follow)
	if err != nil {
		return err
	}
	if b.Kwok, err = b.Cluster.StartKwok(ctx, filepath.Join(b.bin, "kwok"), b.stages); err != nil {
		return err
	}
	defer b.Kwok.Stop()
	if err := b.StartManager(ctx); err != nil {
		return err
	}
	defer func() { b.Manager.Stop() }()
	found, err := s.Measure(ctx, followed)
	if err != nil {
		return errors.Join(err, b.Manager.Tail())
	}
	found.End()
	return report.Finish(s.Benchmark, found)
}

// StartManager starts the refit-manager that is measured, the first one or the next.
func (b *Bench) StartManager(ctx context.Context) error {
	manager, err := startManager(ctx, filepath.Join(b.bin, "refit-manager"), b.Cluster.Name)
	if err != nil {
		return err
	}
	b.Manager = manager
	return nil
}
