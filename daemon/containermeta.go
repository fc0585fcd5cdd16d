package daemon

import (
	"context"

	"k8s.io/client-go/tools/cache"

	inplacenode "github.com/refit-project/refit/inplace/node"
	"github.com/refit-project/refit/internal/kube"
)

// runContainerMeta reports container state of pods that are updated in place.
func (n *node) runContainerMeta(ctx context.Context) error {
	reporter, err := inplacenode.New(inplacenode.Config{
		RuntimeName: n.version.RuntimeName, Runtime: n.runtime, Pods: n.pods, Wants: kube.UpdatedInPlace, API: n.api,
		Hooks: n.hooks, Events: n.events, Guard: n.guard, Logger: n.logger,
	})
	if err != nil {
		return err
	}
	if !cache.WaitForCacheSync(ctx.Done(), n.pods.HasSynced) {
		return nil
	}
	return reporter.Run(ctx)
}
