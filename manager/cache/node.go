package cache

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Nodes looks up the metadata of nodes. Nodes come and go slowly, so one from the cache is good enough; that one does not
// exist is accepted only from the API server, as the caches of different types are not in step.
type Nodes struct{ cached, live client.Reader }

// NewNodes takes the reader of the cache and that of the API server.
func NewNodes(cached, live client.Reader) Nodes { return Nodes{cached: cached, live: live} }

// Find returns the metadata of a node; nil when there is no such node.
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
