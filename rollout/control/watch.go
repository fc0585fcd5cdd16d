package control

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout"
)

// podChanged ignores pod updates that affect no rollout. It relies on the cache to trim pods first.
func podChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, wasPod := e.ObjectOld.(*corev1.Pod)
		after, isPod := e.ObjectNew.(*corev1.Pod)
		return !wasPod || !isPod || before.UID != after.UID || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
			!equality.Semantic.DeepEqual(before.Status, after.Status) || updateChanged(before, after)
	}}
}

// updateChanged reports whether the state of in-place updates has changed.
func updateChanged(before, after *corev1.Pod) bool {
	for _, key := range []string{v1beta1.AnnotationInPlaceUpdateState, v1beta1.AnnotationSidecarSetInPlaceUpdateState, v1beta1.AnnotationRuntimeContainersMeta} {
		if before.Annotations[key] != after.Annotations[key] {
			return true
		}
	}
	return false
}

// active returns the unfinished rollouts of a namespace.
func (r *reconciler) active(ctx context.Context, object client.Object) []ctrl.Request {
	var list v1alpha1.RestartRolloutList
	if err := r.client.List(ctx, &list, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		r.Logger.Error("list RestartRollouts", "namespace", object.GetNamespace(), "err", err)
		return nil
	}
	var requests []ctrl.Request
	for i := range list.Items {
		if !rollout.Ended(&list.Items[i]) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
