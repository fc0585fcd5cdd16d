package webhook

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var namespaceKind = schema.GroupVersionKind{Version: corev1.SchemeGroupVersion.Version, Kind: "Namespace"}

// namespaces reads labels of namespaces from the cache, or from the API server if the cache does not have the namespace yet.
type namespaces struct{ cached, live client.Reader }

// labels returns the labels of a namespace. An error must not be treated like "no labels", because the pod would not
// get its sidecars.
func (n *namespaces) labels(ctx context.Context, name string) (map[string]string, error) {
	object := partialNamespace()
	err := n.cached.Get(ctx, namespaceKey(name), object)
	if apierrors.IsNotFound(err) {
		err = n.live.Get(ctx, namespaceKey(name), object)
	}
	if err != nil {
		return nil, fmt.Errorf("get namespace %s: %w", name, err)
	}
	return object.Labels, nil
}

func namespaceKey(name string) client.ObjectKey { return client.ObjectKey{Name: name} }
