package daemon

import (
	"context"

	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/daemon/containermeta"
	"github.com/refit-project/refit/kube"
)

// runContainerMeta reports of the containers of pods that are updated in place.
func (n *node) runContainerMeta(ctx context.Context) error {
	reporter, err := containermeta.New(containermeta.Config{
		RuntimeName: n.version.RuntimeName, Runtime: n.runtime, Pods: n.pods, Wants: kube.UpdatedInPlace, API: n.api,
		Hooks: n.hooks, Events: n.events, Logger: n.logger,
	})
	if err != nil {
		return err
	}
	if !cache.WaitForCacheSync(ctx.Done(), n.pods.HasSynced) {
		return nil
	}
	return reporter.Run(ctx)
}
