// Package omitted records which pods are left out of the NodePodProbe of their node because it has reached its limits.
// Package podprobe decides which pods these are.
package omitted

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pods holds the omitted pods of the nodes that this process has reconciled.
type Pods struct {
	mu     sync.Mutex
	byNode map[string]map[types.UID]types.NamespacedName
}

// Set replaces the omitted pods of a node. It returns the newly omitted pods, and the keys of all pods whose state has
// changed.
func (o *Pods) Set(node string, pods []*corev1.Pod) (added []*corev1.Pod, changed []types.NamespacedName) {
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

// Forget removes a node that no longer exists.
func (o *Pods) Forget(node string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byNode, node)
}

// Knows reports whether the omitted pods of a node have been set.
func (o *Pods) Knows(node string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, known := o.byNode[node]
	return known
}

// Has reports whether a pod is omitted.
func (o *Pods) Has(pod *corev1.Pod) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, out := o.byNode[pod.Spec.NodeName][pod.UID]
	return out
}

// All returns the UIDs of the omitted pods of all nodes.
func (o *Pods) All() map[types.UID]bool {
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

// Any reports whether a node has omitted pods.
func (o *Pods) Any(node string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.byNode[node]) > 0
}
