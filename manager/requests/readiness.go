package requests

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/refit-project/refit/crr/lifecycle"
	"github.com/refit-project/refit/inplace/gate"
)

// addReadiness adds the controller that sets the conditions KruisePodReady and InPlaceUpdateReady of pods with these readiness gates for
// the first time, and that puts pods back into their Services that `kubectl refit set` has left out of them. A kruise-manager
// sets KruisePodReady too; the write of the second fails, as it is bound to the version of the pod.
func addReadiness(mgr ctrl.Manager, cfg Config) error {
	unset := predicate.NewPredicateFuncs(func(object client.Object) bool {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return false
		}
		status, again := readiness(pod, time.Time{})
		return status != nil || !again.IsZero()
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("readiness").
		For(&corev1.Pod{}, builder.WithPredicates(unset)).
		Complete(readinessReconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), now: cfg.Clock})
}

// readiness is the status that a pod is to have because of its readiness gates, nil if it stays as it is, and when to look again.
func readiness(pod *corev1.Pod, now time.Time) (*corev1.PodStatus, time.Time) {
	if status, begin := lifecycle.BeginReadiness(pod, now); begin {
		return status, time.Time{}
	}
	if status, begin := gate.Begin(pod, now); begin {
		return status, time.Time{}
	}
	return gate.TakeBack(pod, now)
}

// readinessReconciler writes what readiness says. The cache has neither the record of an update nor the API version of owners.
type readinessReconciler struct {
	client client.Client
	live   client.Reader
	now    func() time.Time
}

// Reconcile implements reconcile.Reconciler.
func (r readinessReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if err := r.live.Get(ctx, request.NamespacedName, &pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	now := r.now()
	status, again := readiness(&pod, now)
	if status == nil && again.IsZero() {
		return ctrl.Result{}, nil
	}
	if status == nil {
		return ctrl.Result{RequeueAfter: max(again.Sub(now), conflictDelay)}, nil
	}
	err := patchPodStatus(ctx, r.client, &pod, status)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	if err == nil { // the other gate of the pod, if it has one
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// patchPodStatus patches what differs in the status of a pod, with the observed resourceVersion as precondition.
// Conditions are merged by type, so that those of kubelet do not change.
func patchPodStatus(ctx context.Context, writer client.Client, pod *corev1.Pod, status *corev1.PodStatus) error {
	changed := pod.DeepCopy()
	changed.Status = *status
	patch := client.StrategicMergeFrom(pod, client.MergeFromWithOptimisticLock{})
	if err := writer.Status().Patch(ctx, changed, patch); err != nil {
		return fmt.Errorf("patch readiness of pod %s: %w", pod.Name, err)
	}
	return nil
}
