package daemon

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/refit-project/refit/internal/kube"
	"github.com/refit-project/refit/internal/wait"
	probenode "github.com/refit-project/refit/probe/node"
)

// podProbesDelay is the time between checks for NodePodProbes while the API server does not serve them, which may be
// intended.
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
	manager, err := probenode.New(probenode.Config{
		Node: n.config.Node, CPUs: runtime.NumCPU(), ExecShare: float64(n.config.ExecProbeCPUPercent) / 100, Runtime: n.runtime, NodePodProbe: informer, API: api, Pods: n.pods,
		Events: n.events, Guard: n.guard, Registry: n.metrics.registry, Logger: n.logger,
	})
	if err != nil {
		return err
	}
	n.containers.subscribe(manager.ContainerEvent)
	return manager.Run(ctx)
}

// awaitNodePodProbes waits until NodePodProbes are served. Its only error is the context's.
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
