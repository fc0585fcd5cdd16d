package ownpod

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube/mergepatch"
)

// mergePatch is the media type of RFC 7386.
const mergePatch = "application/merge-patch+json"

// Requests reads and writes the ContainerRecreateRequests for one pod, in the newest version that the cluster serves. Its
// methods always use v1beta1.
type Requests struct {
	client *Client
	alpha  bool
	of     Reference
	labels string
}

// Requests looks up the served version. The error is ErrNotFound if there is none.
func (c *Client) Requests(ctx context.Context, pod identity.Pod) (*Requests, error) {
	for _, version := range []schema.GroupVersion{v1beta1.GroupVersion(), v1alpha1.GroupVersion()} {
		ref := Reference{Group: version.Group, Version: version.Version, Resource: "containerrecreaterequests", Namespace: pod.Namespace}
		served, err := c.Serves(ctx, ref)
		if err != nil {
			return nil, err
		}
		if served {
			return &Requests{
				client: c, alpha: version == v1alpha1.GroupVersion(), of: ref,
				labels: v1beta1.LabelPodUID + "=" + pod.UID + "," + v1beta1.LabelActive + "=true",
			}, nil
		}
	}
	return nil, fmt.Errorf("containerrecreaterequests.%s: %w", v1beta1.Group, ErrNotFound)
}

// KeepsConditions reports whether the served version has status.conditions.
func (r *Requests) KeepsConditions() bool { return !r.alpha }

// Reference returns the collection that is watched.
func (r *Requests) Reference() Reference { return r.of }

// Follow calls changed with the active requests for the pod, like the function Follow.
func (r *Requests) Follow(ctx context.Context, changed func(map[string]*v1beta1.ContainerRecreateRequest), failed func(error)) {
	selection := Selection{Of: r.of, Labels: r.labels}
	if !r.alpha {
		Follow(ctx, r.client, selection, changed, failed)
		return
	}
	Follow(ctx, r.client, selection, func(items map[string]*v1alpha1.ContainerRecreateRequest) {
		converted := make(map[string]*v1beta1.ContainerRecreateRequest, len(items))
		for name, item := range items {
			converted[name] = v1alpha1.ToV1beta1(item)
		}
		changed(converted)
	}, failed)
}

// WriteStatus writes the difference between the request's status and the new one, and returns the request as stored. The
// error is ErrConflict if the request has changed since it was read.
func (r *Requests) WriteStatus(ctx context.Context, request *v1beta1.ContainerRecreateRequest, status v1beta1.ContainerRecreateRequestStatus) (*v1beta1.ContainerRecreateRequest, error) {
	ref := r.of
	ref.Name, ref.Subresource = request.Name, "status"
	patch, err := mergepatch.Status(request.ResourceVersion, request.Status, status)
	if err != nil {
		return nil, fmt.Errorf("encode status of %s: %w", ref, err)
	}
	b, err := r.client.Patch(ctx, ref, mergePatch, patch)
	if err != nil {
		return nil, err
	}
	stored := &v1beta1.ContainerRecreateRequest{}
	if !r.alpha {
		return stored, decode(b, ref, stored)
	}
	alpha := &v1alpha1.ContainerRecreateRequest{}
	if err := decode(b, ref, alpha); err != nil {
		return nil, err
	}
	return v1alpha1.ToV1beta1(alpha), nil
}
