package manager

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

// markerDelay is the least time between two writes of a marker's status because of its pods: a rollout of thousands of
// pods is told of once a second.
const markerDelay = time.Second

// addMarkerStatus tells the users of markers what these reach.
func addMarkerStatus(mgr ctrl.Manager, p *probes) error {
	s := &markerStatus{probes: p}
	return ctrl.NewControllerManagedBy(mgr).
		Named("podprobe-marker").
		For(&v1alpha1.PodProbeMarker{}, builder.WithPredicates(markerChanged())).
		Watches(&corev1.Pod{}, asked(markerDelay, s.ofPod)).
		Watches(&v1alpha1.PodProbeMarker{}, asked(markerDelay, s.ofMarker), builder.WithPredicates(markerChanged())).
		Complete(s)
}

// markerStatus writes the status of markers.
type markerStatus struct{ *probes }

// Reconcile implements reconcile.Reconciler.
func (s *markerStatus) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var marker v1alpha1.PodProbeMarker
	if err := s.client.Get(ctx, request.NamespacedName, &marker); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	write := s.writeStatus
	if marker.DeletionTimestamp != nil {
		write = s.release
	}
	err := write(ctx, &marker)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

func (s *markerStatus) writeStatus(ctx context.Context, marker *v1alpha1.PodProbeMarker) error {
	pods, err := s.pods(ctx, client.InNamespace(marker.Namespace))
	if err != nil {
		return err
	}
	all, err := s.markers(ctx, marker.Namespace)
	if err != nil {
		return err
	}
	changed := marker.DeepCopy()
	changed.Status = podprobe.Status(marker, all, pods, s.now())
	if equality.Semantic.DeepEqual(marker.Status, changed.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(marker, client.MergeFromWithOptimisticLock{})
	if err := s.wrote("podprobemarkers", "write status of marker", s.client.Status().Patch(ctx, changed, patch)); err != nil {
		return err
	}
	s.publish(marker, changed)
	return nil
}

// publish tells of a marker that does not work, or works again.
func (s *markerStatus) publish(before, after *v1alpha1.PodProbeMarker) {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionPodProbeMarkerReady)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionPodProbeMarkerReady)
	switch {
	case is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason:
	case is.Status == metav1.ConditionFalse:
		s.recorder.Eventf(after, nil, corev1.EventTypeWarning, is.Reason, "Probe", "%s", is.Message)
	case was != nil && was.Status == metav1.ConditionFalse:
		s.recorder.Eventf(after, nil, corev1.EventTypeNormal, is.Reason, "Probe", "%s", is.Message)
	}
}

// release takes away the finalizer by which a kruise-manager cleans up. Refit finds what is to be cleaned without.
func (s *markerStatus) release(ctx context.Context, marker *v1alpha1.PodProbeMarker) error {
	if !slices.Contains(marker.Finalizers, v1alpha1.FinalizerNodePodProbeCleanup) {
		return nil
	}
	changed := marker.DeepCopy()
	changed.Finalizers = slices.DeleteFunc(changed.Finalizers, func(f string) bool { return f == v1alpha1.FinalizerNodePodProbeCleanup })
	patch := client.MergeFromWithOptions(marker, client.MergeFromWithOptimisticLock{})
	return s.wrote("podprobemarkers", "remove finalizer of marker", s.client.Patch(ctx, changed, patch))
}

// ofMarker are the other markers of its namespace, if they may take room from each other.
func (s *markerStatus) ofMarker(ctx context.Context, before, after client.Object) []ctrl.Request {
	either := after
	if either == nil {
		either = before
	}
	markers, err := s.markers(ctx, either.GetNamespace())
	if err != nil {
		s.log.Error("markers of a namespace not listed", "namespace", either.GetNamespace(), "err", err)
	}
	if !podprobe.Crowd(append(slices.Clone(markers), selectors(before)...)) {
		return nil
	}
	var requests []ctrl.Request
	for _, m := range markers {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: m.Namespace, Name: m.Name}})
	}
	return requests
}

// ofPod are the markers whose status a change of the pod may change.
func (s *markerStatus) ofPod(ctx context.Context, before, after client.Object) []ctrl.Request {
	was, is := asPod(before), asPod(after)
	if was != nil && is != nil && podprobe.Probed(was) == podprobe.Probed(is) && equality.Semantic.DeepEqual(was.Labels, is.Labels) {
		return nil
	}
	either := after
	if either == nil {
		either = before
	}
	markers, err := s.markers(ctx, either.GetNamespace())
	if err != nil {
		s.log.Error("markers of a pod not listed", "pod", client.ObjectKeyFromObject(either).String(), "err", err)
	}
	var requests []ctrl.Request
	for _, m := range markers {
		if (was != nil && m.Selects(was)) || (is != nil && m.Selects(is)) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: m.Namespace, Name: m.Name}})
		}
	}
	return requests
}
