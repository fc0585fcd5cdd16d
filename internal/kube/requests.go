package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/kube/mergepatch"
)

// ErrNotServed means that the API server does not know ContainerRecreateRequests: their CRD is not installed.
var ErrNotServed = errors.New("containerrecreaterequests.apps.kruise.io are not served: install the CRDs")

const resource = "containerrecreaterequests"

// Requests reads and writes ContainerRecreateRequests in the newest version that the cluster serves. Its methods always use
// v1beta1. Clusters of OpenKruise 1.9 and earlier serve only v1alpha1, without conditions.
type Requests struct {
	client rest.Interface
	guard  *guard.Guard
	alpha  bool
}

// Requests looks up the served version. The error is ErrNotServed if there is none yet.
func (c *Client) Requests(ctx context.Context) (*Requests, error) {
	client, alpha, err := c.newest(ctx, resource, ErrNotServed)
	if err != nil {
		return nil, err
	}
	return &Requests{client: client, guard: c.guard, alpha: alpha}, nil
}

// newest returns a client for the newest version of apps.kruise.io in which the cluster serves a resource, and whether that is
// v1alpha1. The error is notServed if there is none.
func (c *Client) newest(ctx context.Context, resource string, notServed error) (client rest.Interface, alpha bool, err error) {
	for _, alpha := range []bool{false, true} {
		version, addTo := v1beta1.GroupVersion(), v1beta1.AddToScheme
		if alpha {
			version, addTo = v1alpha1.GroupVersion(), v1alpha1.AddToScheme
		}
		served, err := c.serves(ctx, version.String(), resource)
		if err != nil {
			return nil, false, err
		}
		if served {
			client, err := c.group(version, "/apis", runtime.ContentTypeJSON, addTo)
			return client, alpha, err
		}
	}
	return nil, false, notServed
}

func (c *Client) serves(ctx context.Context, groupVersion, resource string) (bool, error) {
	data, err := c.core.Get().AbsPath("/apis", groupVersion).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("discover %s: %w", groupVersion, err)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(data, &list); err != nil {
		return false, fmt.Errorf("discover %s: %w", groupVersion, err)
	}
	for _, r := range list.APIResources {
		if r.Name == resource {
			return true, nil
		}
	}
	return false, nil
}

// KeepsConditions reports whether the served version has status.conditions.
func (r *Requests) KeepsConditions() bool { return !r.alpha }

// Informer caches the active requests of one node.
func (r *Requests) Informer(node string) (cache.SharedIndexInformer, error) {
	selector := labels.SelectorFromSet(labels.Set{v1beta1.LabelNodeName: node, v1beta1.LabelActive: "true"})
	source := cache.NewFilteredListWatchFromClient(r.client, resource, metav1.NamespaceAll, func(options *metav1.ListOptions) {
		options.LabelSelector = selector.String()
	})
	var object runtime.Object = &v1beta1.ContainerRecreateRequest{}
	if r.alpha {
		object = &v1alpha1.ContainerRecreateRequest{}
	}
	return newInformer(r.guard, source, object, trimRequest)
}

// trimRequest converts to v1beta1, reads what a manager has passed in annotations, and removes what is not needed. It keeps
// only annotations of Refit, because anyone may write large ones.
func trimRequest(object any) (any, error) {
	request, ok := object.(*v1beta1.ContainerRecreateRequest)
	if alpha, isAlpha := object.(*v1alpha1.ContainerRecreateRequest); isAlpha {
		request, ok = v1alpha1.ToV1beta1(alpha), true
	}
	if !ok {
		return object, nil
	}
	v1beta1.ReadHandOff(request)
	request.ManagedFields = nil
	kept := map[string]string{}
	for _, key := range []string{v1beta1.AnnotationAdmittedAt, v1beta1.AnnotationRestartBackoff, v1beta1.AnnotationRestartPolicy, v1beta1.AnnotationInstances,
		v1beta1.AnnotationRequestedBy, v1beta1.AnnotationReason, v1beta1.AnnotationTraceparent} {
		if value, ok := request.Annotations[key]; ok {
			kept[key] = value
		}
	}
	request.Annotations = kept
	return request, nil
}

// WriteStatus writes the difference between the request's status and the new one, and returns the request as stored. The
// error is a conflict (apierrors.IsConflict) if the request has changed since it was read.
func (r *Requests) WriteStatus(ctx context.Context, request *v1beta1.ContainerRecreateRequest, status v1beta1.ContainerRecreateRequestStatus) (*v1beta1.ContainerRecreateRequest, error) {
	patch, err := mergepatch.Status(request.ResourceVersion, request.Status, status)
	if err != nil {
		return nil, fmt.Errorf("encode status of request %s/%s: %w", request.Namespace, request.Name, err)
	}
	stored, err := r.patch(ctx, request, patch, "status")
	if err != nil {
		return nil, fmt.Errorf("write status of request %s/%s: %w", request.Namespace, request.Name, err)
	}
	return stored, nil
}

// Annotate sets one annotation of the request, and returns the request as stored. The error is a conflict
// (apierrors.IsConflict) if the request has changed since it was read.
func (r *Requests) Annotate(ctx context.Context, request *v1beta1.ContainerRecreateRequest, key, value string) (*v1beta1.ContainerRecreateRequest, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": request.ResourceVersion, "annotations": map[string]string{key: value},
	}})
	if err != nil {
		return nil, fmt.Errorf("encode annotation %s of request %s/%s: %w", key, request.Namespace, request.Name, err)
	}
	stored, err := r.patch(ctx, request, patch)
	if err != nil {
		return nil, fmt.Errorf("write annotation %s of request %s/%s: %w", key, request.Namespace, request.Name, err)
	}
	return stored, nil
}

func (r *Requests) patch(ctx context.Context, request *v1beta1.ContainerRecreateRequest, patch []byte, subresource ...string) (*v1beta1.ContainerRecreateRequest, error) {
	var stored runtime.Object = &v1beta1.ContainerRecreateRequest{}
	if r.alpha {
		stored = &v1alpha1.ContainerRecreateRequest{}
	}
	err := r.client.Patch(types.MergePatchType).Resource(resource).Namespace(request.Namespace).Name(request.Name).
		SubResource(subresource...).Body(patch).Do(ctx).Into(stored)
	if err != nil {
		return nil, err
	}
	trimmed, err := trimRequest(stored)
	if err != nil {
		return nil, err
	}
	return trimmed.(*v1beta1.ContainerRecreateRequest), nil
}
