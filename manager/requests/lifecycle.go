package manager

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

// conflictDelay lets the cache catch up with the write that came before ours.
const conflictDelay = 500 * time.Millisecond

// addLifecycle looks after requests. No informer may be asked for here, before the manager has started: should the
// stored requests need conversion, its webhook has to be up before their cache can fill.
func addLifecycle(mgr ctrl.Manager, cfg Config, now func() time.Time) error {
	k := &keeper{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder(Name), now: now, log: cfg.Logger,
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("lifecycle").
		For(&v1beta1.ContainerRecreateRequest{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(k.requestsOf), builder.WithPredicates(podChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: cfg.Workers}).
		Complete(k)
}

// keeper carries out what crr.Lifecycle decides.
type keeper struct {
	client   client.Client // reads from the cache
	live     client.Reader
	recorder events.EventRecorder
	now      func() time.Time // of the API server
	log      *slog.Logger
}

// podChanged drops the many changes of pods that no request depends on; the cache has trimmed them to nothing.
func podChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, wasPod := e.ObjectOld.(*corev1.Pod)
		after, isPod := e.ObjectNew.(*corev1.Pod)
		return !wasPod || !isPod || before.UID != after.UID ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) || !equality.Semantic.DeepEqual(before.Status, after.Status)
	}}
}

// requestsOf finds the requests that a change of the pod may concern.
func (k *keeper) requestsOf(ctx context.Context, pod client.Object) []ctrl.Request {
	var list v1beta1.ContainerRecreateRequestList
	if err := k.client.List(ctx, &list, client.InNamespace(pod.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		k.log.Error("requests of a pod not listed", "pod", pod.GetNamespace()+"/"+pod.GetName(), "err", err)
		return nil
	}
	var requests []ctrl.Request
	for i := range list.Items {
		if r := &list.Items[i]; r.Spec.PodName == pod.GetName() && (!ended(r) || holdsPod(r)) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(r)})
		}
	}
	return requests
}

// Reconcile implements reconcile.Reconciler: one look, one decision, at most one write.
func (k *keeper) Reconcile(ctx context.Context, key ctrl.Request) (ctrl.Result, error) {
	var request v1beta1.ContainerRecreateRequest
	if err := k.client.Get(ctx, key.NamespacedName, &request); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	around, err := k.surroundings(ctx, &request)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := k.now()
	decision := crr.Lifecycle(&request, around, now)
	k.log.Debug("decided", "request", key.String(), "why", decision.Why, "again", decision.Again)
	switch err := k.apply(ctx, &request, around.Pod, decision); {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	case err != nil:
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	publish(k.recorder, &request, around.Pod, decision)
	if decision.Again.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: max(decision.Again.Sub(now), time.Millisecond)}, nil
}

func ended(request *v1beta1.ContainerRecreateRequest) bool {
	return crr.Completed(request) || request.DeletionTimestamp != nil
}

// holdsPod reports whether the pod may still be not ready on behalf of the request.
func holdsPod(request *v1beta1.ContainerRecreateRequest) bool {
	return slices.Contains(request.Finalizers, v1beta1.FinalizerUnreadyAcquired)
}

// surroundings looks up the pod and the node. That one of them is gone is believed only from a live read, as the
// caches of requests, pods and nodes are not in step.
func (k *keeper) surroundings(ctx context.Context, request *v1beta1.ContainerRecreateRequest) (crr.Surroundings, error) {
	var around crr.Surroundings
	if ended(request) && !holdsPod(request) {
		return around, nil
	}
	var err error
	if around.Pod, err = k.pod(ctx, request); err != nil || ended(request) {
		return around, err
	}
	if node := request.Labels[v1beta1.LabelNodeName]; node != "" {
		found, err := findNode(ctx, node, k.client, k.live)
		if err != nil {
			return around, err
		}
		around.NodeGone = found == nil
	}
	return around, nil
}

func (k *keeper) pod(ctx context.Context, request *v1beta1.ContainerRecreateRequest) (*corev1.Pod, error) {
	key := client.ObjectKey{Namespace: request.Namespace, Name: request.Spec.PodName}
	for _, reader := range []client.Reader{k.client, k.live} {
		var pod corev1.Pod
		err := reader.Get(ctx, key, &pod)
		if err == nil && string(pod.UID) == request.Labels[v1beta1.LabelPodUID] {
			return &pod, nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("find pod %s: %w", key, err)
		}
	}
	return nil, nil
}

// apply carries out the write of a decision. Every write is bound to the version that was looked at.
func (k *keeper) apply(ctx context.Context, request *v1beta1.ContainerRecreateRequest, pod *corev1.Pod, decision crr.LifecycleDecision) error {
	switch {
	case decision.Delete:
		version := client.Preconditions{UID: &request.UID, ResourceVersion: &request.ResourceVersion}
		return named("delete request", k.client.Delete(ctx, request.DeepCopy(), version))
	case decision.Pod != nil:
		return writePodStatus(ctx, k.client, pod, decision.Pod)
	case decision.Status != nil:
		changed := request.DeepCopy()
		changed.Status = *decision.Status
		patch := client.MergeFromWithOptions(request, client.MergeFromWithOptimisticLock{})
		return named("write status of request", k.client.Status().Patch(ctx, changed, patch))
	case decision.Meta != nil:
		changed := request.DeepCopy()
		changed.ObjectMeta = *decision.Meta
		patch := client.MergeFromWithOptions(request, client.MergeFromWithOptimisticLock{})
		return named("change labels and finalizers of request", k.client.Patch(ctx, changed, patch))
	}
	return nil
}

func named(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
