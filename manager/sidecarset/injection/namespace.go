package injection

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var namespaceKind = schema.GroupVersionKind{Version: corev1.SchemeGroupVersion.Version, Kind: "Namespace"}

// namespaces reads labels of namespaces from the cache, and from the API server where that does not have one yet.
type namespaces struct{ cached, live client.Reader }

// labels of a namespace. An error is not "no labels": the pod must not miss its sidecars for it.
func (n *namespaces) labels(ctx context.Context, name string) (map[string]string, error) {
	object := partialNamespace()
	err := n.cached.Get(ctx, client.ObjectKey{Name: name}, object)
	if apierrors.IsNotFound(err) {
		err = n.live.Get(ctx, client.ObjectKey{Name: name}, object)
	}
	if err != nil {
		return nil, fmt.Errorf("get namespace %s: %w", name, err)
	}
	return object.Labels, nil
}
