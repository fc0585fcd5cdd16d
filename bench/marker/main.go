// Command marker counts what refit-manager writes for one PodProbeMarker on a cluster of nodes and pods that kwok
// simulates: the writes have to be proportional to what has changed. The reports of the daemons are simulated by the
// benchmark itself. It has to run inside the cluster's network; bench/marker/run.sh does all that is needed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	ossignal "os/signal"
	"path/filepath"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/bench/fakenodes"
	"github.com/refit-project/refit/bench/report"
)

// tidyTimeout bounds the clearing away, also after an interrupt.
const tidyTimeout = 5 * time.Minute

func main() {
	b := &bench{}
	flag.IntVar(&b.nodes, "nodes", 500, "fake nodes")
	flag.IntVar(&b.pods, "pods", 5000, "fake pods")
	flag.IntVar(&b.flips, "flips", 100, "pods that change their state")
	flag.DurationVar(&b.quiet, "quiet", 30*time.Second, "how long to look that nothing is written when nothing changes")
	flag.StringVar(&b.bin, "bin", "dist/bin", "`directory` of refit-manager and kwok")
	flag.StringVar(&b.stages, "stages", "", "`directory` kustomize/stage of kwok: what its nodes and pods go through")
	flag.Parse()
	ctx, stop := ossignal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := b.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-marker:", err)
		os.Exit(1)
	}
}

type bench struct {
	fakenodes.Bench
	nodes, pods, flips int
	quiet              time.Duration
	bin, stages        string

	sight client.Reader // follows pods and NodePodProbes
}

func (b *bench) run(ctx context.Context) (err error) {
	if b.nodes < 1 || b.pods < b.nodes || b.flips > b.nodes {
		return errors.New("there must be a pod for each node, and a node for each flip")
	}
	kubeconfig, state := os.Getenv("KUBECONFIG"), os.Getenv("REFIT_CLUSTER")
	if state == "" {
		return errors.New("start bench/marker/run.sh, or run this with .cluster/enter")
	}
	kept := findings{Machine: report.Begin(), Nodes: b.nodes, Pods: b.pods}
	if b.Cluster, err = fakenodes.Open(namespace, kubeconfig, state, v1alpha1.AddToScheme); err != nil {
		return err
	}
	defer func() {
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
		defer cancel()
		b.Say("tidying up")
		err = errors.Join(err, b.tearDown(tidy))
	}()
	if err := b.clear(ctx); err != nil {
		return err
	}
	if err := b.Cluster.Prepare(ctx); err != nil {
		return err
	}
	watching, end := context.WithCancel(ctx)
	defer end()
	if b.sight, err = b.Cluster.Follow(watching, &v1alpha1.NodePodProbe{}); err != nil {
		return err
	}
	if b.Kwok, err = b.Cluster.StartKwok(ctx, filepath.Join(b.bin, "kwok"), b.stages); err != nil {
		return err
	}
	defer b.Kwok.Stop()
	if b.Manager, err = fakenodes.StartManager(ctx, filepath.Join(b.bin, "refit-manager"), namespace); err != nil {
		return err
	}
	defer b.Manager.Stop()
	if err := b.scenario(ctx); err != nil {
		return errors.Join(err, b.Manager.Tail())
	}
	kept.End()
	kept.Steps = b.Steps
	fmt.Println()
	if err := kept.print(os.Stdout); err != nil {
		return err
	}
	return report.Save(filepath.Join("dist", "bench"), "marker", &kept, kept.print, fakenodes.Figures(kept.Steps)...)
}
