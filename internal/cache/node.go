package cache

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Nodes looks up the metadata of nodes. Nodes change slowly, so a cached one is good enough. That a node does not exist is
// only believed from the API server, because the caches of different types are not synchronized.
type Nodes struct{ cached, live client.Reader }

// NewNodes returns Nodes that read from the cache and from the API server.
func NewNodes(cached, live client.Reader) Nodes { return Nodes{cached: cached, live: live} }

// Find returns the metadata of a node; nil if there is no such node.
func (n Nodes) Find(ctx context.Context, name string) (*metav1.ObjectMeta, error) {
	for _, reader := range []client.Reader{n.cached, n.live} {
		var node metav1.PartialObjectMetadata
		node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
		err := reader.Get(ctx, client.ObjectKey{Name: name}, &node)
		if err == nil {
			return &node.ObjectMeta, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("find node %s: %w", name, err)
		}
	}
	return nil, nil
}
