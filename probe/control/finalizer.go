package control

import (
	"context"
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/probe/podprobe"
)

// addFinalizer adds the finalizer, like OpenKruise: a deleted marker stays until its probes have ended on all nodes.
// The patch changes the marker's resource version, so its status is written afterwards.
func (r *markerReconciler) addFinalizer(ctx context.Context, marker *v1alpha1.PodProbeMarker) error {
	changed := marker.DeepCopy()
	changed.Finalizers = append(changed.Finalizers, v1alpha1.FinalizerNodePodProbeCleanup)
	patch := client.MergeFromWithOptions(marker, client.MergeFromWithOptimisticLock{})
	if err := r.written("podprobemarkers", "add finalizer to marker", r.client.Patch(ctx, changed, patch)); err != nil {
		return err
	}
	return r.writeStatus(ctx, changed)
}

// removeFinalizer removes the finalizer when no NodePodProbe names the marker. Until then, the change of the last
// NodePodProbe enqueues the marker.
func (r *markerReconciler) removeFinalizer(ctx context.Context, marker *v1alpha1.PodProbeMarker) error {
	if !slices.Contains(marker.Finalizers, v1alpha1.FinalizerNodePodProbeCleanup) {
		return nil
	}
	var list v1alpha1.NodePodProbeList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list NodePodProbes: %w", err)
	}
	if slices.ContainsFunc(list.Items, func(n v1alpha1.NodePodProbe) bool { return hasProbeOf(n.Spec, marker.Namespace, marker.Name) }) {
		return nil
	}
	changed := marker.DeepCopy()
	changed.Finalizers = slices.DeleteFunc(changed.Finalizers, func(f string) bool { return f == v1alpha1.FinalizerNodePodProbeCleanup })
	patch := client.MergeFromWithOptions(marker, client.MergeFromWithOptimisticLock{})
	return r.written("podprobemarkers", "remove finalizer of marker", r.client.Patch(ctx, changed, patch))
}

// endingMarkers returns the markers that are being deleted and that the changed NodePodProbe no longer names.
func (r *markerReconciler) endingMarkers(ctx context.Context, before, after client.Object) []ctrl.Request {
	was, ok := before.(*v1alpha1.NodePodProbe)
	if !ok || after != nil && before.GetGeneration() == after.GetGeneration() {
		return nil
	}
	left := namedBy(was.Spec)
	if is, ok := after.(*v1alpha1.NodePodProbe); ok {
		for key := range namedBy(is.Spec) {
			delete(left, key)
		}
	}
	var requests []ctrl.Request
	for key := range left {
		var marker v1alpha1.PodProbeMarker
		err := r.client.Get(ctx, key, &marker)
		if client.IgnoreNotFound(err) != nil {
			r.log.Error("get marker", "marker", key.String(), "err", err)
		}
		if err == nil && marker.DeletionTimestamp != nil {
			requests = append(requests, ctrl.Request{NamespacedName: key})
		}
	}
	return requests
}

// namedBy returns the markers of the probes in a spec.
func namedBy(spec v1alpha1.NodePodProbeSpec) map[client.ObjectKey]bool {
	named := map[client.ObjectKey]bool{}
	for _, pod := range spec.PodProbes {
		for _, probe := range pod.Probes {
			if marker, ok := podprobe.MarkerOf(probe.Name); ok {
				named[client.ObjectKey{Namespace: pod.Namespace, Name: marker}] = true
			}
		}
	}
	return named
}
