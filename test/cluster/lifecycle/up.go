package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/refit-project/refit/test/cluster/mounts"
	"github.com/refit-project/refit/test/cluster/process"
	"github.com/refit-project/refit/test/cluster/programs"
	"github.com/refit-project/refit/test/cluster/state"
)

const (
	apiServerTimeout = 2 * time.Minute
	nodeTimeout      = 2 * time.Minute
	// tooManyRestarts is how often a component may be started again while it is waited for. A kubelet that
	// is quicker than containerd needs one.
	tooManyRestarts = 5
)

// Options are what Up can be told.
type Options struct {
	// Sources are what the cluster's programs are built from.
	Sources programs.Sources
	// Nodes is how many nodes there should be at least.
	Nodes   int
	Kubelet KubeletOptions
	// TimeoutFactor is how many times longer than usual to wait for the components; 0 is 1.
	TimeoutFactor uint8
}

func (o Options) patience(limit time.Duration) time.Duration {
	return limit * time.Duration(max(1, o.TimeoutFactor))
}

// KubeletOptions change how kubelets run that are started from now on.
type KubeletOptions struct {
	// FeatureGates are "Name=true" each.
	FeatureGates []string
	// CRISocket is the runtime's socket as the node sees it; empty is containerd's own.
	CRISocket string
}

// Up brings the cluster up: it starts what is missing and returns when every node is ready. A cluster that
// is up already is left alone; what a killed run left behind is cleared first.
func (c *Cluster) Up(ctx context.Context, options Options) error {
	if os.Geteuid() != 0 {
		return errors.New("a cluster makes namespaces, mounts and cgroups: run this as root")
	}
	if options.Nodes < 1 || options.Nodes > state.MaxNodes {
		return fmt.Errorf("%d nodes: want 1 to %d", options.Nodes, state.MaxNodes)
	}
	release, err := c.lock()
	if err != nil {
		return err
	}
	defer release()
	options.Sources.Kubernetes, err = c.settings.version(options.Sources.Kubernetes, c.up())
	if err != nil {
		return err
	}
	if c.settled(ctx, options.Nodes) {
		c.report.Say("the cluster is up already")
		c.hint()
		return nil
	}
	found, err := programs.Get(ctx, options.Sources, c.report, c.out)
	if err != nil {
		return err
	}
	if err := c.recover(ctx); err != nil {
		return err
	}
	if !c.exists() {
		if err := c.choosePorts(ctx); err != nil {
			return err
		}
	}
	c.settings.Programs, c.settings.Kubernetes = found, options.Sources.Kubernetes
	if err := c.saveSettings(); err != nil {
		return err
	}
	if err := c.start(ctx, options); err != nil {
		return err
	}
	c.hint()
	return nil
}

// settled says whether everything runs and that many nodes are ready.
func (c *Cluster) settled(ctx context.Context, nodes int) bool {
	numbers, err := c.nodeNumbers(nodes)
	if !c.exists() || err != nil {
		return false
	}
	for _, component := range c.components(numbers) {
		record, alive := c.running(component)
		if !alive || record.Stopped() {
			return false
		}
	}
	api, err := c.connect()
	return err == nil && api.Ready(ctx) == nil && api.NodesReady(ctx, numbers) == nil
}

// up says whether there is a cluster that can be completed: the first node's namespaces are needed by everything else.
func (c *Cluster) up() bool {
	_, alive := process.Alive(c.record(part{holder, state.NodeName(1)}))
	return alive && c.exists()
}

// recover makes sure that what is there is either a cluster that can be completed or nothing at all.
func (c *Cluster) recover(ctx context.Context) error {
	if err := c.sweep(); err != nil {
		return err
	}
	if c.up() {
		return c.recoverNodes(ctx)
	}
	_, err := os.Stat(c.state.Path())
	if err != nil && len(c.leftovers()) == 0 {
		return nil
	}
	return c.report.Step("clearing what an earlier run left", func() error { return c.clear(ctx, false) })
}

// recoverNodes clears the nodes whose namespaces have lost their holder.
func (c *Cluster) recoverNodes(ctx context.Context) error {
	numbers, err := c.state.Nodes()
	if err != nil {
		return err
	}
	for _, number := range numbers {
		name := state.NodeName(number)
		if _, alive := process.Alive(c.record(part{holder, name})); alive {
			continue
		}
		err := c.report.Step("clearing "+name, func() error { return c.clearNode(ctx, name) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) start(ctx context.Context, options Options) error {
	numbers, err := c.nodeNumbers(options.Nodes)
	if err != nil {
		return err
	}
	if err := c.writeControlPlane(); err != nil {
		return err
	}
	if err := mounts.MakePoints(); err != nil {
		return err
	}
	err = c.report.Step("network namespaces, registry and etcd", func() error {
		if err := c.startGround(ctx, numbers, options); err != nil {
			return err
		}
		return c.startAll(ctx, []part{{gateway, ""}, {etcd, ""}, {apiServer, ""}})
	})
	if err != nil {
		return err
	}
	for _, number := range numbers {
		if err := c.startAll(ctx, []part{{containerd, state.NodeName(number)}}); err != nil {
			return err
		}
	}
	if err := c.report.Step("images into the registry", func() error { return c.settings.Programs.PushImages(ctx, c.registry()) }); err != nil {
		return err
	}
	api, err := c.connect()
	if err != nil {
		return err
	}
	err = c.report.Step("waiting for the API server", func() error {
		return c.await(ctx, options.patience(apiServerTimeout), []part{{gateway, ""}, {etcd, ""}, {apiServer, ""}}, api.Ready)
	})
	if err != nil {
		return err
	}
	if err := c.startAll(ctx, c.components(numbers)); err != nil {
		return err
	}
	return c.report.Step("waiting for the nodes", func() error {
		return c.await(ctx, options.patience(nodeTimeout), c.components(numbers), func(ctx context.Context) error {
			return errors.Join(api.NodesReady(ctx, numbers), api.DefaultServiceAccount(ctx))
		})
	})
}

// startGround makes the nodes' namespaces and everything on disk that their programs read.
func (c *Cluster) startGround(ctx context.Context, numbers []int, options Options) error {
	for _, number := range numbers {
		if err := c.writeNode(number, options.Kubelet); err != nil {
			return err
		}
		if err := c.startNode(ctx, number, numbers); err != nil {
			return err
		}
	}
	return nil
}

// await waits until check passes. It gives up when one of the components does not stay up.
func (c *Cluster) await(ctx context.Context, limit time.Duration, components []part, check func(context.Context) error) error {
	var fault error
	var failing *part
	before := map[part]int{}
	err := process.Until(ctx, limit, func() bool {
		for _, component := range components {
			record, _ := c.running(component)
			if _, seen := before[component]; !seen {
				before[component] = record.Restarts
			}
			if record.Restarts-before[component] >= tooManyRestarts {
				failing = &component
				return true
			}
		}
		fault = check(ctx)
		return fault == nil
	})
	switch {
	case failing != nil:
		return fmt.Errorf("%s does not stay up. The end of %s:\n%s", failing, c.log(*failing), tail(c.log(*failing)))
	case errors.Is(err, context.DeadlineExceeded) && fault != nil:
		return fmt.Errorf("not after %s: %w (logs: %s)", limit, fault, c.state.Path("logs"))
	}
	return err
}

func (c *Cluster) hint() {
	fmt.Fprintf(c.out, `
export KUBECONFIG=%s
  kubectl get nodes        works from this machine, with %s
%s CMD...   runs CMD inside the cluster's network
  registry for pushes      %s (docker.io/library/nginx is library/nginx there)
`, c.state.Path("kubeconfig"), c.state.Path("bin", "kubectl"), c.state.Path("enter"), c.registry())
}
