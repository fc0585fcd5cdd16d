// Command sidecarset counts what refit-manager writes and needs for a rollout of many SidecarSets, and for pods that become
// ready and not ready. Nodes and pods are simulated by kwok; that a container is replaced after its image has changed is
// reported by this program, as kubelet would: not ready, and ready a second later. bench/sidecarset/run.sh does all that is
// needed.
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

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/bench/fakenodes"
	"github.com/refit-project/refit/bench/report"
)

// tidyTimeout bounds the clearing away, also after an interrupt.
const tidyTimeout = 10 * time.Minute

func main() {
	b := &bench{}
	flag.IntVar(&b.nodes, "nodes", 500, "fake nodes")
	flag.IntVar(&b.pods, "pods", 10000, "fake pods")
	flag.IntVar(&b.workloads, "workloads", 1000, "workloads of the pods")
	flag.IntVar(&b.sets, "sets", 100, "SidecarSets, each for as many of the workloads")
	flag.IntVar(&b.flips, "flips", 200, "pods that become not ready, and ready again")
	flag.DurationVar(&b.quiet, "quiet", 30*time.Second, "how long to look that nothing is written when nothing changes")
	flag.StringVar(&b.bin, "bin", "dist/bin", "`directory` of refit-manager and kwok")
	flag.StringVar(&b.stages, "stages", "", "`directory` kustomize/stage of kwok: what its nodes and pods go through")
	flag.Parse()
	ctx, stop := ossignal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := b.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-sidecarset:", err)
		os.Exit(1)
	}
}

type bench struct {
	fakenodes.Bench
	nodes, pods, workloads, sets, flips int
	quiet                               time.Duration
	bin, stages                         string

	followed client.Reader // pods and SidecarSets
	restart  time.Duration // until refit-manager had taken in all pods
	flipped  []flipped
}

// flipped is what a readiness flip costs refit-manager.
type flipped struct {
	Pods int           `json:"matchedPods"`
	CPU  time.Duration `json:"cpuPerFlipNanoseconds"`
}

func (b *bench) check() error {
	if b.nodes < 1 || b.sets < 1 || b.workloads%b.sets != 0 || b.pods%b.workloads != 0 || b.pods < 100 || b.flips < 1 {
		return errors.New("the pods must be at least 100 and a multiple of the workloads, and those a multiple of the SidecarSets")
	}
	return nil
}

func (b *bench) run(ctx context.Context) (err error) {
	if err := b.check(); err != nil {
		return err
	}
	kubeconfig, state := os.Getenv("KUBECONFIG"), os.Getenv("REFIT_CLUSTER")
	if state == "" {
		return errors.New("start bench/sidecarset/run.sh, or run this with .cluster/enter")
	}
	kept := findings{Machine: report.Begin(), Nodes: b.nodes, Pods: b.pods, Workloads: b.workloads, SidecarSets: b.sets}
	if b.Cluster, err = fakenodes.Open(name, kubeconfig, state, v1beta1.AddToScheme); err != nil {
		return err
	}
	defer func() {
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
		defer cancel()
		b.Say("tidying up")
		err = errors.Join(err, b.clear(tidy), b.Cluster.Restore(tidy))
	}()
	if err := b.clear(ctx); err != nil {
		return err
	}
	if err := b.Cluster.Prepare(ctx); err != nil {
		return err
	}
	following, end := context.WithCancel(ctx)
	defer end()
	followed, err := b.Cluster.Follow(following, &v1beta1.SidecarSet{})
	if err != nil {
		return err
	}
	b.followed = followed
	kubelets := newKubelets(b.Cluster.API, followed)
	if err := kubelets.start(following); err != nil {
		return err
	}
	defer kubelets.stop()
	if b.Kwok, err = b.Cluster.StartKwok(ctx, filepath.Join(b.bin, "kwok"), b.stages); err != nil {
		return err
	}
	defer b.Kwok.Stop()
	if b.Manager, err = fakenodes.StartManager(ctx, filepath.Join(b.bin, "refit-manager"), name); err != nil {
		return err
	}
	defer func() { b.Manager.Stop() }()
	if err := b.scenario(ctx); err != nil {
		return errors.Join(err, b.Manager.Tail())
	}
	kept.End()
	kept.Steps, kept.Flips, kept.Restart = b.Steps, b.flipped, b.restart
	fmt.Println()
	if err := kept.print(os.Stdout); err != nil {
		return err
	}
	return report.Save(filepath.Join("dist", "bench"), "sidecarset", &kept, kept.print, fakenodes.Figures(kept.Steps)...)
}
