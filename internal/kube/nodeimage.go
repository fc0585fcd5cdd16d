package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/guard"
)

// ErrNodeImagesNotServed means that the API server does not know NodeImages: their CRD is not installed.
var ErrNodeImagesNotServed = errors.New("nodeimages.apps.kruise.io are not served: install the CRDs")

// NodeImages reads and writes the NodeImage of one node, in the newest version that the cluster serves. Its methods always
// use v1beta1. Clusters of OpenKruise 1.8 and earlier serve only v1alpha1, which has the same fields.
type NodeImages struct {
	client rest.Interface
	guard  *guard.Guard
	alpha  bool
}

// NodeImages looks up the served version. The error is ErrNodeImagesNotServed if there is none yet.
func (c *Client) NodeImages(ctx context.Context) (*NodeImages, error) {
	client, alpha, err := c.newest(ctx, v1beta1.ResourceNodeImage, ErrNodeImagesNotServed)
	if err != nil {
		return nil, err
	}
	return &NodeImages{client: client, guard: c.guard, alpha: alpha}, nil
}

// Informer caches the one object with the node's name, as *v1beta1.NodeImage.
func (n *NodeImages) Informer(node string) (cache.SharedIndexInformer, error) {
	source := cache.NewFilteredListWatchFromClient(n.client, v1beta1.ResourceNodeImage, metav1.NamespaceAll, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, node).String()
	})
	return newInformer(n.guard, source, n.object(), trimNodeImage)
}

func (n *NodeImages) object() runtime.Object {
	if n.alpha {
		return &v1alpha1.NodeImage{}
	}
	return &v1beta1.NodeImage{}
}

// trimNodeImage converts either version to v1beta1 and removes what is not needed.
func trimNodeImage(object any) (any, error) {
	if alpha, ok := object.(*v1alpha1.NodeImage); ok {
		object = &v1beta1.NodeImage{ObjectMeta: alpha.ObjectMeta, Spec: alpha.Spec, Status: alpha.Status}
	}
	if image, ok := object.(*v1beta1.NodeImage); ok {
		image.ManagedFields, image.Annotations = nil, nil
	}
	return object, nil
}

// WriteStatus replaces the status. Nobody else writes it, so the only precondition is the object's UID: a conflict
// (apierrors.IsConflict) means that the object was deleted and created again. before lists the images that the stored
// status may have.
func (n *NodeImages) WriteStatus(ctx context.Context, object *v1beta1.NodeImage, before []string, status v1beta1.NodeImageStatus) error {
	patch, err := imageStatusPatch(object.UID, before, status)
	if err != nil {
		return fmt.Errorf("encode status of NodeImage %s: %w", object.Name, err)
	}
	err = n.client.Patch(types.MergePatchType).Resource(v1beta1.ResourceNodeImage).Name(object.Name).SubResource("status").
		Body(patch).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("write status of NodeImage %s: %w", object.Name, err)
	}
	return nil
}

// imageStatusPatch includes empty fields, which the type's own encoding leaves out: in a merge patch null removes a field.
func imageStatusPatch(uid types.UID, before []string, status v1beta1.NodeImageStatus) ([]byte, error) {
	images := map[string]*v1beta1.ImageStatus{}
	for _, name := range before {
		images[name] = nil
	}
	for name, image := range status.ImageStatuses {
		images[name] = &image
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": uid},
		"status": map[string]any{
			"desired": status.Desired, "succeeded": status.Succeeded, "failed": status.Failed, "pulling": status.Pulling,
			"waiting": status.Waiting, "imageStatuses": images,
		},
	})
}

// Secret reads one Secret from the API server. Not found and forbidden are errors of apierrors.
func (c *Client) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := c.core.Get().Resource("secrets").Namespace(namespace).Name(name).Do(ctx).Into(secret)
	if err != nil {
		return nil, fmt.Errorf("get secret %s/%s: %w", namespace, name, err)
	}
	return secret, nil
}
