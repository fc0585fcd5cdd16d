package control

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// omittedPods records which pods are left out of the NodePodProbe of their node because it has reached its limits. Package
// podprobe decides which pods these are.
type omittedPods struct {
	mu     sync.Mutex
	byNode map[string]map[types.UID]types.NamespacedName
}

// set replaces the omitted pods of a node. It returns the newly omitted pods, and the keys of all pods whose state has
// changed.
func (o *omittedPods) set(node string, pods []*corev1.Pod) (added []*corev1.Pod, changed []types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := maps.Clone(o.byNode[node])
	now := make(map[types.UID]types.NamespacedName, len(pods))
	for _, pod := range pods {
		now[pod.UID] = types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
		if _, known := before[pod.UID]; !known {
			added, changed = append(added, pod), append(changed, now[pod.UID])
		}
		delete(before, pod.UID)
	}
	if o.byNode == nil {
		o.byNode = map[string]map[types.UID]types.NamespacedName{}
	}
	o.byNode[node] = now
	for _, key := range before {
		changed = append(changed, key)
	}
	return added, changed
}

// forget removes a node that no longer exists.
func (o *omittedPods) forget(node string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byNode, node)
}

// knows reports whether the omitted pods of a node have been set.
func (o *omittedPods) knows(node string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, known := o.byNode[node]
	return known
}

// has reports whether a pod is omitted.
func (o *omittedPods) has(pod *corev1.Pod) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, out := o.byNode[pod.Spec.NodeName][pod.UID]
	return out
}

// all returns the UIDs of the omitted pods of all nodes.
func (o *omittedPods) all() map[types.UID]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := map[types.UID]bool{}
	for _, pods := range o.byNode {
		for uid := range pods {
			all[uid] = true
		}
	}
	return all
}

// any reports whether a node has omitted pods.
func (o *omittedPods) any(node string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.byNode[node]) > 0
}
