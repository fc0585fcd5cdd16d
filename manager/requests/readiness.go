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
)

// addReadiness adds the controller that sets the condition KruisePodReady of pods with that readiness gate for the first
// time. A kruise-manager does the same; the write of the second fails, as it is bound to the version of the pod.
func addReadiness(mgr ctrl.Manager, cfg Config) error {
	unset := predicate.NewPredicateFuncs(func(object client.Object) bool {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return false
		}
		_, begin := lifecycle.BeginReadiness(pod, time.Time{})
		return begin
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("readiness").
		For(&corev1.Pod{}, builder.WithPredicates(unset)).
		Complete(readinessReconciler{client: mgr.GetClient(), now: cfg.Clock})
}

// readinessReconciler sets the first KruisePodReady condition of pods.
type readinessReconciler struct {
	client client.Client
	now    func() time.Time
}

// Reconcile implements reconcile.Reconciler.
func (r readinessReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if err := r.client.Get(ctx, request.NamespacedName, &pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	status, begin := lifecycle.BeginReadiness(&pod, r.now())
	if !begin {
		return ctrl.Result{}, nil
	}
	err := patchPodStatus(ctx, r.client, &pod, status)
	if apierrors.IsConflict(err) {
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
