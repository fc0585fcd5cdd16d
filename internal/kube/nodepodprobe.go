package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/guard"
)

// ErrProbesNotServed means that the API server does not know NodePodProbes: their CRD is not installed.
var ErrProbesNotServed = errors.New("nodepodprobes.apps.kruise.io are not served: install the CRDs")

const resourceNodePodProbes = "nodepodprobes"

// NodePodProbes reads and writes the NodePodProbe of one node.
type NodePodProbes struct {
	client rest.Interface
	guard  *guard.Guard
}

// NodePodProbes checks whether they are served. The error is ErrProbesNotServed if they are not yet.
func (c *Client) NodePodProbes(ctx context.Context) (*NodePodProbes, error) {
	version := v1alpha1.GroupVersion()
	served, err := c.serves(ctx, version.String(), resourceNodePodProbes)
	if err != nil {
		return nil, err
	}
	if !served {
		return nil, ErrProbesNotServed
	}
	client, err := c.group(version, "/apis", runtime.ContentTypeJSON, v1alpha1.AddToScheme)
	return &NodePodProbes{client: client, guard: c.guard}, err
}

// Informer caches the one object with the node's name.
func (n *NodePodProbes) Informer(node string) (cache.SharedIndexInformer, error) {
	source := cache.NewFilteredListWatchFromClient(n.client, resourceNodePodProbes, metav1.NamespaceAll, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, node).String()
	})
	return newInformer(n.guard, source, &v1alpha1.NodePodProbe{}, trimNodePodProbe)
}

// trimNodePodProbe removes what is not needed.
func trimNodePodProbe(object any) (any, error) {
	if o, ok := object.(*v1alpha1.NodePodProbe); ok {
		o.ManagedFields, o.Annotations = nil, nil
	}
	return object, nil
}

// WriteStatus replaces the status and returns the object as stored. Nobody else writes the status, so the only precondition
// is the object's UID: a conflict (apierrors.IsConflict) means that the object was deleted and created again.
func (n *NodePodProbes) WriteStatus(ctx context.Context, object *v1alpha1.NodePodProbe, status v1alpha1.NodePodProbeStatus) (*v1alpha1.NodePodProbe, error) {
	patch, err := probeStatusPatch(object.UID, status)
	if err != nil {
		return nil, fmt.Errorf("encode status of NodePodProbe %s: %w", object.Name, err)
	}
	stored := &v1alpha1.NodePodProbe{}
	err = n.client.Patch(types.MergePatchType).Resource(resourceNodePodProbes).Name(object.Name).SubResource("status").
		Body(patch).Do(ctx).Into(stored)
	if err != nil {
		return nil, fmt.Errorf("write status of NodePodProbe %s: %w", object.Name, err)
	}
	stored.ManagedFields, stored.Annotations = nil, nil
	return stored, nil
}

// probeStatusPatch includes the list even if it is empty, which the type's own encoding leaves out.
func probeStatusPatch(uid types.UID, status v1alpha1.NodePodProbeStatus) ([]byte, error) {
	type patch struct {
		Metadata struct {
			UID types.UID `json:"uid"`
		} `json:"metadata"`
		Status struct {
			PodProbeStatuses []v1alpha1.PodProbeStatus `json:"podProbeStatuses"`
			Conditions       []metav1.Condition        `json:"conditions,omitempty"`
		} `json:"status"`
	}
	var p patch
	p.Metadata.UID = uid
	p.Status.PodProbeStatuses, p.Status.Conditions = status.PodProbeStatuses, status.Conditions
	return json.Marshal(p)
}
