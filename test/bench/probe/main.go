// Command probe measures what pod probes cost on the checkout's test cluster: the daemon's CPU against the CPU of kubelet
// for as many readiness probes of the same kind on the same number of containers, in the same run. It has to run inside
// the cluster's network; make bench-probe does all that is needed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/test/bench/report"
	"github.com/refit-project/refit/test/bench/testcluster"
)

func main() {
	config, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench-probe:", err)
		os.Exit(1)
	}
	benchmark := testcluster.Benchmark{
		Name: "probe", Types: []func(*runtime.Scheme) error{v1alpha1.AddToScheme}, Testapp: true, Installed: !config.install,
		Measure: func(ctx context.Context, c *testcluster.Cluster) (report.Findings, error) { return run(ctx, c, config) },
	}
	benchmark.Main()
}

func run(ctx context.Context, c *testcluster.Cluster, config config) (report.Findings, error) {
	b := &bench{cluster: newCluster(c), config: config, say: c.Say}
	kept := &findings{Machine: report.Begin(), Images: c.Images, PerPod: config.perPod()}
	err := b.run(ctx, kept)
	kept.Results, kept.Notes = b.results, b.notes
	if len(b.results) == 0 && kept.Overload == nil {
		return nil, err
	}
	return kept, err
}

// config of a run.
type config struct {
	counts    []int
	kinds     []string
	periods   []time.Duration
	floor     []string
	each      int // probes of each container
	execRate  float64
	window    time.Duration
	install   bool
	flipsOver int
	overload  int // pods; 0: not
}

// perPod is the number of probes of each pod.
func (c config) perPod() int { return containers * c.each }

func parse(args []string) (config, error) {
	var c config
	flags := flag.NewFlagSet("bench-probe", flag.ContinueOnError)
	counts := flags.String("counts", "10,100,500", "numbers of probes; none: only -overload")
	kinds := flags.String("kinds", "http,tcp,exec", "kinds of probes")
	periods := flags.String("periods", "1s,10s", "their periods, whole seconds")
	floor := flags.String("floor", "exec-10-1s,http-100-1s,tcp-100-1s,exec-100-10s,http-500-1s,tcp-500-1s",
		"scenarios, KIND-COUNT-PERIOD, that are also done with kubelet's readiness probes; recreates the pods for each")
	flags.IntVar(&c.each, "each", 1, fmt.Sprintf("probes of each container, at most %d; with more than one, name no -floor", v1alpha1.MaxProbesOfMarker/containers))
	flags.Float64Var(&c.execRate, "exec-rate", 12, "exec probes a second above which a scenario is left out: each costs some 50 ms of CPU in the runtime")
	flags.DurationVar(&c.window, "window", 30*time.Second, "time over which a scenario is measured; two periods if they are longer")
	flags.IntVar(&c.flipsOver, "flips", 100, "number of probes with which, at http and 1s, one is turned each second; 0: not")
	flags.IntVar(&c.overload, "overload", 20, fmt.Sprintf("number of pods with %d exec probes every second in the end, for two minutes; 0: not", overloadProbes))
	flags.BoolVar(&c.install, "install", true, "install the manifests of deploy/ first")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	c.kinds, c.floor = strings.Split(*kinds, ","), strings.Split(*floor, ",")
	switch most := v1alpha1.MaxProbesOfMarker / containers; {
	case c.each < 1 || c.each > most:
		return c, fmt.Errorf("-each %d: want 1 to %d", c.each, most)
	case c.each > 1 && *floor != "":
		return c, errors.New("-floor: kubelet has one readiness probe of each container: with -each give -floor ''")
	}
	for word := range strings.SplitSeq(*counts, ",") {
		if *counts == "" {
			break
		}
		var n int
		if _, err := fmt.Sscanf(word, "%d", &n); err != nil || n < 1 || n%c.perPod() != 0 {
			return c, fmt.Errorf("-counts %s: want multiples of %d", word, c.perPod())
		}
		c.counts = append(c.counts, n)
	}
	for word := range strings.SplitSeq(*periods, ",") {
		d, err := time.ParseDuration(word)
		if err != nil || d < time.Second || d%time.Second != 0 {
			return c, fmt.Errorf("-periods %s: want whole seconds", word)
		}
		c.periods = append(c.periods, d)
	}
	for _, kind := range c.kinds {
		if _, ok := handlers[kind]; !ok {
			return c, fmt.Errorf("-kinds %s: want exec, http, tcp or grpc", kind)
		}
	}
	return c, nil
}
