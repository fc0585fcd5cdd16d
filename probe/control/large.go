package control

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/probe/podprobe"
)

// complete returns a pod from the API server if it is too large for the cache and its probes have to be decided on, and otherwise as it
// is cached. It returns nil if the pod is gone, and the number of reads.
func (a *api) complete(ctx context.Context, cached *corev1.Pod, markers []podprobe.Marker) (pod *corev1.Pod, reads int, err error) {
	if podprobe.Complete(cached) || !podprobe.Concerns(markers, cached) {
		return cached, 0, nil
	}
	var live corev1.Pod
	err = a.live.Get(ctx, client.ObjectKeyFromObject(cached), &live)
	switch {
	case apierrors.IsNotFound(err), err == nil && live.UID != cached.UID: // its deletion has its own watch event
		return nil, 1, nil
	case err != nil:
		return nil, 1, fmt.Errorf("get pod that is too large for the cache: %w", err)
	}
	return &live, 1, nil
}

// largeSpecs returns the probes of the pods that are too large for the cache. It reads one after the other and keeps only the probes:
// whoever may create pods decides how large they are.
func (r *nodeReconciler) largeSpecs(ctx context.Context, pods []*corev1.Pod, markers []podprobe.Marker) (map[types.UID]v1alpha1.PodProbe, error) {
	specs := map[types.UID]v1alpha1.PodProbe{}
	for _, cached := range pods {
		if podprobe.Complete(cached) || !podprobe.Probeable(cached) {
			continue
		}
		pod, _, err := r.complete(ctx, cached, markers)
		if err != nil {
			return nil, err
		}
		if pod != nil {
			r.guard.Try("podprobes", guard.Of(pod), func() { specs[pod.UID] = podprobe.PodSpec(pod, markers) })
		}
	}
	return specs, nil
}

// largeProbes returns the full names of the probes that the nodes have for the pods that are too large for the cache.
func (r *markerReconciler) largeProbes(ctx context.Context, pods []*corev1.Pod) (map[types.UID]map[string]bool, error) {
	names := map[types.UID]map[string]bool{}
	for _, pod := range pods {
		if podprobe.Complete(pod) || pod.Spec.NodeName == "" {
			continue
		}
		var node v1alpha1.NodePodProbe
		if err := r.client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, &node); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get NodePodProbe: %w", err)
		}
		for i := range node.Spec.PodProbes {
			if of := &node.Spec.PodProbes[i]; of.UID == string(pod.UID) {
				names[pod.UID] = map[string]bool{}
				for _, p := range of.Probes {
					names[pod.UID][p.Name] = true
				}
			}
		}
	}
	return names, nil
}
