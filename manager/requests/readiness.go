package manager

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/refit-project/refit/crr"
)

// addReadiness answers the readiness gate KruisePodReady of pods for the first time. A kruise-manager does the same;
// the first of the two does it, as the write is bound to the version of the pod.
func addReadiness(mgr ctrl.Manager, now func() time.Time) error {
	unanswered := predicate.NewPredicateFuncs(func(object client.Object) bool {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return false
		}
		_, begin := crr.BeginReadiness(pod, time.Time{})
		return begin
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("readiness").
		For(&corev1.Pod{}, builder.WithPredicates(unanswered)).
		Complete(gatekeeper{client: mgr.GetClient(), now: now})
}

// gatekeeper opens readiness gates.
type gatekeeper struct {
	client client.Client
	now    func() time.Time
}

// Reconcile implements reconcile.Reconciler.
func (g gatekeeper) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if err := g.client.Get(ctx, request.NamespacedName, &pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	status, begin := crr.BeginReadiness(&pod, g.now())
	if !begin {
		return ctrl.Result{}, nil
	}
	err := writePodStatus(ctx, g.client, &pod, status)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// writePodStatus sends what has changed in the status of a pod, bound to the version that was looked at. Conditions
// are merged by type, so that those of kubelet are not touched.
func writePodStatus(ctx context.Context, writer client.Client, pod *corev1.Pod, status *corev1.PodStatus) error {
	changed := pod.DeepCopy()
	changed.Status = *status
	patch := client.StrategicMergeFrom(pod, client.MergeFromWithOptimisticLock{})
	return named("change readiness of pod "+pod.Name, writer.Status().Patch(ctx, changed, patch))
}
