// Command crr measures ContainerRecreateRequests on the checkout's test cluster against a floor: the same stop of
// equal fresh pods sent straight to CRI, in turns, in the same run. It has to run inside the cluster's network;
// make bench-crr does all that is needed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/bench/crr/meter"
	"github.com/refit-project/refit/test/bench/crr/verdict"
	"github.com/refit-project/refit/test/bench/report"
	"github.com/refit-project/refit/test/bench/testcluster"
)

func main() {
	pairs := flag.Int("pairs", 30, "restarts of each side, one at a time")
	rounds := flag.Int("rounds", 2, "batches of each side, for those at once")
	atOnce := flag.String("at-once", "40,100", "sizes of the batches of scenario crowded")
	only := flag.String("scenarios", "one,crowded,ignorers,backoffs", "which to run")
	flag.Parse()
	benchmark := testcluster.Benchmark{
		Name: "crr", Types: []func(*runtime.Scheme) error{v1beta1.AddToScheme}, Testapp: true,
		Measure: func(ctx context.Context, c *testcluster.Cluster) (report.Findings, error) {
			return run(ctx, c, &bench{pairs: *pairs, rounds: *rounds, atOnce: strings.Split(*atOnce, ",")}, strings.Split(*only, ","))
		},
	}
	benchmark.Main()
}

func run(ctx context.Context, in *testcluster.Cluster, b *bench, only []string) (report.Findings, error) {
	kept := &findings{Machine: report.Begin(), Images: in.Images, Pairs: b.pairs, Rounds: b.rounds}
	in.Say("loadavg %s", kept.LoadBefore)
	c, err := openCluster(in)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.runtime.Close() }()
	b.cluster, b.say = c, in.Say
	if err := b.run(ctx, only, kept); err != nil {
		return nil, err
	}
	kept.Results = b.results
	return kept, nil
}

// run creates the namespace and runs the scenarios in it.
func (b *bench) run(ctx context.Context, only []string, kept *findings) error {
	others, err := b.cluster.others(ctx)
	if err != nil {
		return err
	}
	if others > verdict.PodsOfNode-100 {
		return fmt.Errorf("%d pods on %s: kubelet takes %d in all, and 100 at once are measured", others, testcluster.Node, verdict.PodsOfNode)
	}
	if kept.Kubelet, kept.Runtime, err = b.cluster.Versions(ctx); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	group, watching := errgroup.WithContext(watching)
	if err := b.cluster.setUp(watching, group); err != nil {
		stop()
		return errors.Join(err, group.Wait())
	}
	if b.meter, err = meter.New(watching, b.cluster.Cluster); err == nil {
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
