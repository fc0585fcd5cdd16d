// Package cache is the cache of the manager: which objects it holds, the index of pods by node, and the look-up of nodes.
// Features say what it keeps of pods, see package trim. Decisions and writes must stay out.
package cache

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/cache/trim"
)

// ByObject are options for the cache of single types.
type ByObject = map[client.Object]cache.ByObject

// Options returns options for a cache that holds only what is used: of pods the fields that features need, of all other
// objects everything except managedFields and annotations beyond a bound. Each package of the manager adds options for the
// types that only it reads.
func Options(pods *trim.Pods, added ...ByObject) cache.Options {
	byObject := ByObject{&corev1.Pod{}: {Transform: pods.Transform}}
	for _, types := range added {
		for object, options := range types {
			byObject[object] = options
		}
	}
	return cache.Options{ByObject: byObject, DefaultTransform: trimObject}
}

// PodsByNode is the field index of cached pods by node: client.MatchingFields{PodsByNode: node}.
const PodsByNode = "spec.nodeName"

// IndexPods adds the index PodsByNode. It is called once, before the cache starts.
func IndexPods(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &corev1.Pod{}, PodsByNode, NodeOfPod); err != nil {
		return fmt.Errorf("index pods by node: %w", err)
	}
	return nil
}

// NodeOfPod returns the node that a pod is bound to; nothing for a pod that is not scheduled.
func NodeOfPod(object client.Object) []string {
	if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		return []string{pod.Spec.NodeName}
	}
	return nil
}
