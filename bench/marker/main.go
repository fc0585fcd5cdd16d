// Command marker counts what refit-manager writes for one PodProbeMarker on a cluster of fake nodes and pods, which kwok
// plays: the writes are to be proportional to what has changed. The daemons' part, the reports, is played by the
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
	nodes, pods, flips int
	quiet              time.Duration
	bin, stages        string

	cluster *cluster
	sight   client.Reader
	kwok    *child
	manager *manager
	steps   []step
	began   time.Time
}

func (b *bench) say(format string, args ...any) {
	fmt.Printf("[%6.1fs] %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

func (b *bench) run(ctx context.Context) (err error) {
	b.began = time.Now()
	if b.nodes < 1 || b.pods < b.nodes || b.flips > b.nodes {
		return errors.New("there must be a pod for each node, and a node for each flip")
	}
	state := os.Getenv("REFIT_CLUSTER")
	if state == "" {
		return errors.New("start bench/marker/run.sh, or run this with .cluster/enter")
	}
	kept := findings{Machine: report.Begin(), Nodes: b.nodes, Pods: b.pods}
	if b.cluster, err = openCluster(os.Getenv("KUBECONFIG"), state); err != nil {
		return err
	}
	defer func() {
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
		defer cancel()
		b.say("tidying up")
		err = errors.Join(err, b.cluster.tearDown(tidy))
	}()
	if err := b.cluster.prepare(ctx); err != nil {
		return err
	}
	watching, end := context.WithCancel(ctx)
	defer end()
	if b.sight, err = newSight(watching, os.Getenv("KUBECONFIG"), b.cluster.api.Scheme()); err != nil {
		return err
	}
	args := []string{"--kubeconfig=" + os.Getenv("KUBECONFIG"), "--manage-nodes-with-annotation-selector=" + fakeNode, "--cidr=10.128.0.0/16"}
	for _, stage := range []string{"node/fast/node-initialize", "node/heartbeat/node-heartbeat", "pod/fast/pod-ready", "pod/fast/pod-delete"} {
		args = append(args, "--config="+filepath.Join(b.stages, stage+".yaml"))
	}
	if b.kwok, err = start(ctx, filepath.Join(b.bin, "kwok"), args...); err != nil {
		return err
	}
	defer b.kwok.stop()
	if b.manager, err = startManager(ctx, filepath.Join(b.bin, "refit-manager")); err != nil {
		return err
	}
	defer b.manager.stop()
	if err := b.scenario(ctx); err != nil {
		return errors.Join(err, b.manager.tail())
	}
	kept.End()
	kept.Steps = b.steps
	fmt.Println()
	if err := kept.print(os.Stdout); err != nil {
		return err
	}
	return report.Save(filepath.Join("dist", "bench"), "marker", &kept, kept.print, kept.figures()...)
}
