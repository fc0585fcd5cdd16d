package control

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/cache"
)

// daemons records since when nodes have had no ready daemon. The times are those at which this process observed it:
// clocks of nodes and times of requests are not compared, and after a change of leader the time starts again.
type daemons struct {
	cache.Daemons
	pods client.Reader // the cache, with the index cache.PodsByNode

	mu     sync.Mutex
	absent map[string]time.Time // by node
}

func newDaemons(where cache.Daemons, pods client.Reader) *daemons {
	return &daemons{Daemons: where, pods: pods, absent: map[string]time.Time{}}
}

// find returns since when the node of a request has had no ready daemon, and whether its only daemon is a
// kruise-daemon. The time is zero if there is a daemon, and for virtual nodes, where a sidecar in the pod takes the
// daemon's place.
func (d *daemons) find(ctx context.Context, request *v1beta1.ContainerRecreateRequest, now time.Time) (absentSince time.Time, kruise bool, err error) {
	node := request.Labels[v1beta1.LabelNodeName]
	if node == "" || request.Labels[v1beta1.LabelType] == v1beta1.TypeVirtualKubelet {
		return time.Time{}, false, nil
	}
	var pods corev1.PodList
	if err := d.pods.List(ctx, &pods, client.MatchingFields{cache.PodsByNode: node}, client.UnsafeDisableDeepCopy); err != nil {
		return time.Time{}, false, fmt.Errorf("list pods of node %s: %w", node, err)
	}
	refit := false
	for i := range pods.Items {
		if pod := &pods.Items[i]; cache.IsReady(pod) {
			refit = refit || d.HasRefit(pod)
			kruise = kruise || d.HasKruise(pod)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if refit || kruise {
		delete(d.absent, node)
		return time.Time{}, !refit, nil
	}
	if _, known := d.absent[node]; !known {
		d.absent[node] = now
	}
	return d.absent[node], false, nil
}

// forget removes a node that has a ready daemon or does not exist any more.
func (d *daemons) forget(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.absent, node)
}
