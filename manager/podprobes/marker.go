package podprobes

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/podprobe"
)

// markerDelay is the minimum time between two status writes of a marker because of its pods: during a rollout of
// thousands of pods the status is written once a second.
const markerDelay = time.Second

// addMarkers adds the controller of the status of markers.
func addMarkers(mgr ctrl.Manager, a *api) error {
	r := &markerReconciler{api: a}
	return ctrl.NewControllerManagedBy(mgr).
		Named("podprobe-marker").
		For(&v1alpha1.PodProbeMarker{}, builder.WithPredicates(markerChanged())).
		Watches(&corev1.Pod{}, enqueue(markerDelay, r.markersOfPod)).
		Watches(&v1alpha1.PodProbeMarker{}, enqueue(markerDelay, r.markersBeside), builder.WithPredicates(markerChanged())).
		Complete(r)
}

// markerReconciler writes the status of markers.
type markerReconciler struct{ *api }

// Reconcile implements reconcile.Reconciler.
func (r *markerReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var marker v1alpha1.PodProbeMarker
	if err := r.client.Get(ctx, request.NamespacedName, &marker); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	write := r.writeStatus
	if marker.DeletionTimestamp != nil {
		write = r.removeFinalizer
	}
	err := write(ctx, &marker)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

func (r *markerReconciler) writeStatus(ctx context.Context, marker *v1alpha1.PodProbeMarker) error {
	pods, err := r.listPods(ctx, client.InNamespace(marker.Namespace))
	if err != nil {
		return err
	}
	all, err := r.listMarkers(ctx, marker.Namespace)
	if err != nil {
		return err
	}
	changed := marker.DeepCopy()
	changed.Status = podprobe.Status(marker, all, pods, r.now())
	if equality.Semantic.DeepEqual(marker.Status, changed.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(marker, client.MergeFromWithOptimisticLock{})
	if err := r.written("podprobemarkers", "patch status of marker", r.client.Status().Patch(ctx, changed, patch)); err != nil {
		return err
	}
	r.recordEvent(marker, changed)
	return nil
}

// recordEvent reports that the condition Ready has become False, or True again.
func (r *markerReconciler) recordEvent(before, after *v1alpha1.PodProbeMarker) {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionPodProbeMarkerReady)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionPodProbeMarkerReady)
	switch {
	case is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason:
	case is.Status == metav1.ConditionFalse:
		r.recorder.Eventf(after, nil, corev1.EventTypeWarning, is.Reason, "Probe", "%s", is.Message)
	case was != nil && was.Status == metav1.ConditionFalse:
		r.recorder.Eventf(after, nil, corev1.EventTypeNormal, is.Reason, "Probe", "%s", is.Message)
	}
}

// removeFinalizer removes the finalizer by which a kruise-manager cleans up. Refit does not need one.
func (r *markerReconciler) removeFinalizer(ctx context.Context, marker *v1alpha1.PodProbeMarker) error {
	if !slices.Contains(marker.Finalizers, v1alpha1.FinalizerNodePodProbeCleanup) {
		return nil
	}
	changed := marker.DeepCopy()
	changed.Finalizers = slices.DeleteFunc(changed.Finalizers, func(f string) bool { return f == v1alpha1.FinalizerNodePodProbeCleanup })
	patch := client.MergeFromWithOptions(marker, client.MergeFromWithOptimisticLock{})
	return r.written("podprobemarkers", "remove finalizer of marker", r.client.Patch(ctx, changed, patch))
}

// markersBeside returns the markers of a changed marker's namespace if together they may exceed the limit of a pod.
func (r *markerReconciler) markersBeside(ctx context.Context, before, after client.Object) []ctrl.Request {
	either := after
	if either == nil {
		either = before
	}
	markers, err := r.listMarkers(ctx, either.GetNamespace())
	if err != nil {
		r.log.Error("list markers", "namespace", either.GetNamespace(), "err", err)
	}
	if !podprobe.ExceedsPodLimit(append(slices.Clone(markers), compileEither(before)...)) {
		return nil
	}
	var requests []ctrl.Request
	for _, m := range markers {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: m.Namespace, Name: m.Name}})
	}
	return requests
}

// markersOfPod returns the markers whose status a change of the pod may affect.
func (r *markerReconciler) markersOfPod(ctx context.Context, before, after client.Object) []ctrl.Request {
	was, is := asPod(before), asPod(after)
	if was != nil && is != nil && podprobe.Probeable(was) == podprobe.Probeable(is) && equality.Semantic.DeepEqual(was.Labels, is.Labels) {
		return nil
	}
	either := after
	if either == nil {
		either = before
	}
	markers, err := r.listMarkers(ctx, either.GetNamespace())
	if err != nil {
		r.log.Error("list markers of pod", "pod", client.ObjectKeyFromObject(either).String(), "err", err)
	}
	var requests []ctrl.Request
	for _, m := range markers {
		if (was != nil && m.Selects(was)) || (is != nil && m.Selects(is)) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: m.Namespace, Name: m.Name}})
		}
	}
	return requests
}
