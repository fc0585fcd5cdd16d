package daemon

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/refit-project/refit/daemon/podprobes"
	"github.com/refit-project/refit/kube"
	"github.com/refit-project/refit/wait"
)

// podProbesDelay is between looks for NodePodProbes where the API server does not serve them: a cluster may do
// without pod probes.
const podProbesDelay = 30 * time.Second

// runPodProbes runs the probes of the node's NodePodProbe as soon as the API server serves NodePodProbes.
func (n *node) runPodProbes(ctx context.Context) error {
	api, err := n.awaitNodePodProbes(ctx)
	if err != nil {
		return err
	}
	informer, err := api.Informer(n.config.Node)
	if err != nil {
		return err
	}
	manager, err := podprobes.New(podprobes.Config{
		Node: n.config.Node, CPUs: runtime.NumCPU(), Runtime: n.runtime, NodePodProbe: informer, API: api, Pods: n.pods,
		Events: n.events, Registry: n.metrics.registry, Logger: n.logger,
	})
	if err != nil {
		return err
	}
	n.containers.subscribe(manager.ContainerEvent)
	return manager.Run(ctx)
}

// awaitNodePodProbes fails only with its context.
func (n *node) awaitNodePodProbes(ctx context.Context) (*kube.NodePodProbes, error) {
	for logged := false; ; {
		api, err := n.api.NodePodProbes(ctx)
		if err == nil {
			return api, nil
		}
		delay := wait.RetryDelay
		if errors.Is(err, kube.ErrProbesNotServed) {
			delay = podProbesDelay
		}
		if !logged && ctx.Err() == nil {
			n.logger.Info("pod probes are not run yet", "err", err)
			logged = true
		}
		if err := wait.For(ctx, delay); err != nil {
			return nil, err
		}
	}
}
