package control

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/refit-project/refit/crr/lifecycle"
	"github.com/refit-project/refit/inplace/gate"
	"github.com/refit-project/refit/internal/conflict"
	faircontrol "github.com/refit-project/refit/internal/fair/control"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
)

// addReadiness adds the controller that sets the initial conditions of the readiness gates KruisePodReady and
// InPlaceUpdateReady, and that makes pods ready again that `kubectl refit set` has left not ready. A kruise-manager
// sets KruisePodReady too; the second of the two writes fails, because each is bound to a resource version of the pod.
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
		WithOptions(controller.Options{NewQueue: faircontrol.Queue}).
		Complete(guardcontrol.Reconciler(cfg.Guard, mgr.GetClient(), &corev1.Pod{}, conflict.Reconciler(readinessReconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), now: cfg.Clock})))
}

// readiness returns the pod status that the readiness gates need, or nil if it need not change, and when to check again.
func readiness(pod *corev1.Pod, now time.Time) (*corev1.PodStatus, time.Time) {
	if status, begin := lifecycle.BeginReadiness(pod, now); begin {
		return status, time.Time{}
	}
	if status, begin := gate.Begin(pod, now); begin {
		return status, time.Time{}
	}
	return gate.TakeBack(pod, now)
}

// readinessReconciler writes the status that readiness returns. It reads pods from the API server: the cache has
// neither the record of an update nor the API version of owners.
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
		return ctrl.Result{RequeueAfter: max(again.Sub(now), nextLook)}, nil
	}
	if err := patchPodStatus(ctx, r.client, &pod, status); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{RequeueAfter: nextLook}, nil // the pod may have the other gate too
}

// patchPodStatus patches the differences in the status of a pod, with the observed resourceVersion as precondition.
// Conditions are merged by type, so that kubelet's conditions do not change.
func patchPodStatus(ctx context.Context, writer client.Client, pod *corev1.Pod, status *corev1.PodStatus) error {
	changed := pod.DeepCopy()
	changed.Status = *status
	patch := client.StrategicMergeFrom(pod, client.MergeFromWithOptimisticLock{})
	if err := writer.Status().Patch(ctx, changed, patch); err != nil {
		return fmt.Errorf("patch readiness of pod %s: %w", pod.Name, err)
	}
	return nil
}
