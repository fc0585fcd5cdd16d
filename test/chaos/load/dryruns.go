package load

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/cluster"
)

// dryRunsAtOnce bounds the calls under way.
const dryRunsAtOnce = 32

// DryRuns has rate requests a second admitted, and none stored, until the context ends. It returns how many were. What failed is in
// the audit log.
func DryRuns(ctx context.Context, c *cluster.Cluster, rate int) (admitted int64, err error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(Namespace)); err != nil {
		return 0, fmt.Errorf("list pods for dry runs: %w", err)
	}
	if len(pods.Items) == 0 {
		return 0, fmt.Errorf("dry runs: no pod in namespace %s", Namespace)
	}
	var passed atomic.Int64
	calls := errgroup.Group{}
	calls.SetLimit(dryRunsAtOnce)
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			_ = calls.Wait() // the calls return no errors
			return passed.Load(), nil
		case <-ticker.C:
		}
		calls.Go(func() error {
			if dryRun(ctx, c, &pods.Items[n%len(pods.Items)], n) == nil {
				passed.Add(1)
			}
			return nil
		})
	}
}

// dryRun is not broken off: a call whose client has gone fails in the audit log.
func dryRun(ctx context.Context, c *cluster.Cluster, pod *corev1.Pod, n int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cluster.CallTimeout)
	defer cancel()
	order := &Request{}
	order.Namespace, order.Name = pod.Namespace, fmt.Sprintf("dry-run-%d", n)
	order.Spec.PodName = pod.Name
	order.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{Name: pod.Spec.Containers[0].Name}}
	return c.Create(ctx, order, client.DryRunAll)
}
