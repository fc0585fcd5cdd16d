// Command memory measures what a node and a pod are charged for Refit: RssAnon of the processes and the working set of
// their cgroups. The daemon and the manager are looked at idle, right after many ContainerRecreateRequests, right after many
// probes, and a while after each; the sidecar idle in a pod. It runs inside the network of the checkout's cluster: make bench-memory.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/test/bench/report"
	"github.com/refit-project/refit/test/bench/testcluster"
)

type bench struct {
	*cluster
	pods, requests, probes int
	calm, probing, after   time.Duration
	found                  findings
}

func main() {
	b := &bench{}
	flag.IntVar(&b.pods, "pods", 30, "pods on the node, whose containers are restarted at once")
	flag.IntVar(&b.requests, "requests", 330, "requests in all")
	flag.IntVar(&b.probes, "probes", 10, "probes of each pod every second, after the requests; 0 for none")
	flag.DurationVar(&b.probing, "probing", time.Minute, "how long to probe")
	flag.DurationVar(&b.calm, "calm", 45*time.Second, "how long to wait before the programs count as idle")
	flag.DurationVar(&b.after, "after", 2*time.Minute, "how long after the requests to look again")
	flag.Parse()
	benchmark := testcluster.Benchmark{
		Name: "memory", Types: []func(*runtime.Scheme) error{v1beta1.AddToScheme}, Testapp: true,
		Measure: func(ctx context.Context, c *testcluster.Cluster) (report.Findings, error) {
			b.cluster = &cluster{c}
			b.found = findings{Machine: report.Begin(), Pods: b.pods, Requests: b.requests, Probes: b.pods * b.probes}
			if err := b.scenario(ctx); err != nil {
				return nil, err
			}
			return &b.found, nil
		},
	}
	benchmark.Main()
}

// scenario is idle, busy and idle again.
func (b *bench) scenario(ctx context.Context) error {
	b.Say("creating %d pods and one with a sidecar", b.pods)
	if err := b.setUp(ctx, b.pods); err != nil {
		return err
	}
	if err := b.restart(ctx); err != nil { // what an earlier run left in them does not count
		return err
	}
	if err := wait.For(ctx, b.calm); err != nil {
		return err
	}
	if err := b.look(ctx, "idle", daemon, manager, sidecar); err != nil {
		return err
	}
	for done := 0; done < b.requests; done += b.pods {
		if err := b.recreate(ctx, fmt.Sprint("wave-", done), min(b.pods, b.requests-done)); err != nil {
			return err
		}
		b.Say("%d requests", min(done+b.pods, b.requests))
	}
	if err := b.look(ctx, "right after the requests", daemon, manager); err != nil {
		return err
	}
	if err := wait.For(ctx, b.after); err != nil {
		return err
	}
	if err := b.look(ctx, report.Duration(b.after)+" after them", daemon, manager); err != nil || b.probes == 0 {
		return err
	}
	return b.probe(ctx)
}

// probe is the second load.
func (b *bench) probe(ctx context.Context) error {
	b.Say("%d probes every second for %s", b.pods*b.probes, b.probing)
	if err := b.cluster.probe(ctx, b.pods, b.probes, func() error { return wait.For(ctx, b.probing) }); err != nil {
		return err
	}
	if err := b.look(ctx, "right after the probes", daemon, manager); err != nil {
		return err
	}
	if err := wait.For(ctx, b.after); err != nil {
		return err
	}
	return b.look(ctx, report.Duration(b.after)+" after the probes", daemon, manager)
}

// look measures programs now.
func (b *bench) look(ctx context.Context, when string, programs ...program) error {
	for _, p := range programs {
		pid, err := b.process(ctx, p)
		if err != nil {
			return fmt.Errorf("find the process of %s: %w", p.name, err)
		}
		taken, err := read(pid)
		if err != nil {
			return fmt.Errorf("read the memory of %s: %w", p.name, err)
		}
		b.Say("%s, %s: %s anonymous, working set %s", p.name, when, report.Bytes(taken.Anonymous), report.Bytes(taken.WorkingSet))
		b.found.Rows = append(b.found.Rows, row{Program: p.name, When: when, usage: taken})
	}
	return nil
}
