package podprobes

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// omittedPods are the pods that are not in the NodePodProbe of their node, as it has reached its limits.
type omittedPods struct {
	mu     sync.Mutex
	byNode map[string]map[types.UID]bool
}

// set replaces those of a node, and returns the pods that were not omitted before.
func (o *omittedPods) set(node string, pods []*corev1.Pod) []*corev1.Pod {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.byNode[node]
	var added []*corev1.Pod
	now := make(map[types.UID]bool, len(pods))
	for _, pod := range pods {
		now[pod.UID] = true
		if !before[pod.UID] {
			added = append(added, pod)
		}
	}
	if o.byNode == nil {
		o.byNode = map[string]map[types.UID]bool{}
	}
	if o.byNode[node] = now; len(now) == 0 {
		delete(o.byNode, node)
	}
	return added
}

// all returns those of all nodes.
func (o *omittedPods) all() map[types.UID]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := map[types.UID]bool{}
	for _, pods := range o.byNode {
		maps.Copy(all, pods)
	}
	return all
}

// any reports whether a node has some.
func (o *omittedPods) any(node string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.byNode[node]) > 0
}
