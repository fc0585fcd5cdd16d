// Command crr measures ContainerRecreateRequests on the checkout's test cluster against a floor: the same stop of
// equal fresh pods sent straight to CRI, in turns, in the same run. It has to run inside the cluster's network;
// test/bench/crr/run.sh does all that is needed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/bench/crr/meter"
	"github.com/refit-project/refit/test/bench/crr/verdict"
	"github.com/refit-project/refit/test/bench/report"
	"github.com/refit-project/refit/test/bench/testcluster"
)

// tidyTimeout bounds the clearing away after an interrupt.
const tidyTimeout = 4 * time.Minute

func main() {
	pairs := flag.Int("pairs", 30, "restarts of each side, one at a time")
	rounds := flag.Int("rounds", 2, "batches of each side, for those at once")
	atOnce := flag.String("at-once", "40,100", "sizes of the batches of scenario crowded")
	only := flag.String("scenarios", "one,crowded,ignorers,backoffs", "which to run")
	flag.Parse()
	testcluster.Main(benchmark, func(ctx context.Context) error {
		return run(ctx, &bench{pairs: *pairs, rounds: *rounds, atOnce: strings.Split(*atOnce, ",")}, strings.Split(*only, ","))
	})
}

const benchmark = "crr"

func run(ctx context.Context, b *bench, only []string) error {
	where, err := testcluster.Find(benchmark)
	if err != nil {
		return err
	}
	began := time.Now()
	b.say = func(format string, args ...any) {
		fmt.Printf("[%6.1fs] %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	kept := findings{Machine: report.Begin(), Pairs: b.pairs, Rounds: b.rounds}
	b.say("loadavg %s", kept.LoadBefore)
	if kept.Images, err = where.Images(); err != nil {
		return err
	}
	testapp, err := where.Testapp(kept.Images)
	if err != nil {
		return err
	}
	b.say("installing the manifests of deploy/")
	if err := where.Install(ctx); err != nil {
		return err
	}
	c, err := openCluster(where.Kubeconfig, where.State, testapp)
	if err != nil {
		return err
	}
	defer func() { _ = c.runtime.Close() }()
	b.cluster = c
	err = b.run(ctx, only, &kept)
	tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
	defer cancel()
	if err := errors.Join(err, c.tearDown(tidy)); err != nil {
		return err
	}
	kept.End()
	kept.Results = b.results
	fmt.Println()
	if err := kept.print(os.Stdout); err != nil {
		return err
	}
	return report.Save(filepath.Join(where.Root, "dist", "bench"), benchmark, &kept, kept.print, kept.figures()...)
}

// run makes the namespace and runs the scenarios in it.
func (b *bench) run(ctx context.Context, only []string, kept *findings) error {
	others, err := b.cluster.others(ctx)
	if err != nil {
		return err
	}
	if others > verdict.PodsOfNode-100 {
		return fmt.Errorf("%d pods on %s: 100 at once need room, kubelet takes %d in all", others, node, verdict.PodsOfNode)
	}
	where := &corev1.Node{}
	if err := b.cluster.api.Get(ctx, client.ObjectKey{Name: node}, where); err != nil {
		return err
	}
	kept.Kubelet, kept.Runtime = where.Status.NodeInfo.KubeletVersion, where.Status.NodeInfo.ContainerRuntimeVersion
	watching, stop := context.WithCancel(ctx)
	group, watching := errgroup.WithContext(watching)
	if err := b.cluster.setUp(watching, group); err != nil {
		stop()
		return errors.Join(err, group.Wait())
	}
	if b.meter, err = meter.New(watching, b.cluster.metered()); err == nil {
		err = b.scenarios(watching, only)
	}
	stop()
	return errors.Join(err, group.Wait())
}

func (b *bench) scenarios(ctx context.Context, only []string) error {
	all := []struct {
		name string
		run  func(context.Context) error
	}{{"one", b.one}, {"crowded", b.crowded}, {"ignorers", b.ignorers}, {"backoffs", b.backoffs}}
	for _, scenario := range all {
		if !slices.Contains(only, scenario.name) {
			continue
		}
		b.say("%s ...", scenario.name)
		if err := scenario.run(ctx); err != nil {
			return fmt.Errorf("scenario %s: %w", scenario.name, err)
		}
	}
	return nil
}

// add keeps a result and says at once how it came out.
func (b *bench) add(r verdict.Result) {
	b.results = append(b.results, r)
	for _, v := range r.Verdicts {
		b.say("%s: %s %s, target %s", r.Name, v.What, v.Found, v.Target)
	}
	for _, note := range r.Notes {
		b.say("%s: %s", r.Name, note)
	}
}
