package daemon

import (
	"context"

	"github.com/refit-project/refit/crr"
	crrnode "github.com/refit-project/refit/crr/node"
	"github.com/refit-project/refit/internal/kube"
	"github.com/refit-project/refit/internal/wait"
)

// runRequests executes the node's ContainerRecreateRequests as soon as the API server serves them.
func (n *node) runRequests(ctx context.Context) error {
	var api *kube.Requests
	err := wait.Retry(ctx, n.logger, "find ContainerRecreateRequests in the API", func() (err error) {
		api, err = n.api.Requests(ctx)
		return err
	})
	if err != nil {
		return err
	}
	informer, err := api.Informer(n.config.Node)
	if err != nil {
		return err
	}
	worker, err := crrnode.New(crrnode.Config{
		Node: n.config.Node, RuntimeName: n.version.RuntimeName, Runtime: n.runtime, Hooks: n.hooks,
		Requests: informer, RequestAPI: api, Pods: n.pods, PodAPI: n.api, ClockOffset: n.clockOffset,
		Options: crr.Options{RespectBackoff: n.config.RespectBackoff}, MaxConcurrent: n.config.MaxConcurrent,
		Synced: n.ready, Events: n.events, Guard: n.guard, Registry: n.metrics.registry, Tracer: n.traces.Tracer(component), Logger: n.logger,
	})
	if err != nil {
		return err
	}
	n.containers.subscribe(worker.ContainerEvent)
	return worker.Run(ctx)
}

// ready is called when requests can be executed.
func (n *node) ready() {
	n.readiness.synced()
	n.logger.Info("ready", "node", n.config.Node, "runtime", n.version.RuntimeName, "runtimeVersion", n.version.RuntimeVersion)
}
