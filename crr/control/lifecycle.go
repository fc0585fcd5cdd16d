package control

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
	"github.com/refit-project/refit/crr/lifecycle"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/conflict"
	faircontrol "github.com/refit-project/refit/internal/fair/control"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
)

// addLifecycle adds the controller of ContainerRecreateRequests.
func addLifecycle(mgr ctrl.Manager, cfg Config) error {
	r := &lifecycleReconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), nodes: cfg.Nodes, daemons: newDaemons(cfg.Daemons, mgr.GetClient()), recorder: cfg.Recorder, now: cfg.Clock, log: cfg.Logger,
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("lifecycle").
		For(&v1beta1.ContainerRecreateRequest{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.requestsOfPod), builder.WithPredicates(podChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: cfg.Workers, NewQueue: faircontrol.Queue}).
		Complete(guardcontrol.Reconciler(cfg.Guard, mgr.GetClient(), &v1beta1.ContainerRecreateRequest{}, conflict.Reconciler(r)))
}

// lifecycleReconciler applies the decisions of lifecycle.Next.
type lifecycleReconciler struct {
	client   client.Client // reads from the cache
	live     client.Reader // reads from the API server
	nodes    cache.Nodes
	daemons  *daemons
	recorder events.EventRecorder
	now      func() time.Time
	log      *slog.Logger
}

// podChanged ignores pod updates that affect no request. It relies on the cache to trim pods first.
func podChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, wasPod := e.ObjectOld.(*corev1.Pod)
		after, isPod := e.ObjectNew.(*corev1.Pod)
		return !wasPod || !isPod || before.UID != after.UID ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) || !equality.Semantic.DeepEqual(before.Status, after.Status)
	}}
}

// requestsOfPod returns the requests that a change of the pod may affect: the requests for this pod, and, if the pod is
// a daemon, the requests that it carries out.
func (r *lifecycleReconciler) requestsOfPod(ctx context.Context, object client.Object) []ctrl.Request {
	namespace, affects := object.GetNamespace(), func(request *v1beta1.ContainerRecreateRequest) bool {
		return request.Spec.PodName == object.GetName() && (!ended(request) || holdsReadiness(request))
	}
	if pod, ok := object.(*corev1.Pod); ok && r.daemons.Has(pod) {
		if cache.IsReady(pod) { // recorded even if no request of the node is reconciled meanwhile
			r.daemons.forget(pod.Spec.NodeName)
		}
		namespace, affects = "", func(request *v1beta1.ContainerRecreateRequest) bool {
			return request.Labels[v1beta1.LabelNodeName] == pod.Spec.NodeName && !ended(request)
		}
	}
	var list v1beta1.ContainerRecreateRequestList
	if err := r.client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		r.log.Error("list requests of pod", "pod", object.GetNamespace()+"/"+object.GetName(), "err", err)
		return nil
	}
	var requests []ctrl.Request
	for i := range list.Items {
		if item := &list.Items[i]; affects(item) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(item)})
		}
	}
	return requests
}

// Reconcile implements reconcile.Reconciler. It observes once, decides once, and writes at most once.
func (r *lifecycleReconciler) Reconcile(ctx context.Context, key ctrl.Request) (ctrl.Result, error) {
	var request v1beta1.ContainerRecreateRequest
	if err := r.client.Get(ctx, key.NamespacedName, &request); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	observed, err := r.observe(ctx, &request)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := r.now()
	decision := lifecycle.Next(&request, observed, now)
	r.log.Debug("reconciled request", "request", key.String(), "why", decision.Why, "requeueAt", decision.Again.Time)
	if err := r.apply(ctx, &request, observed.Pod, decision); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	recordEvent(r.recorder, &request, observed.Pod, decision)
	if decision.Again.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: decision.Again.In(now, time.Millisecond)}, nil
}

func ended(request *v1beta1.ContainerRecreateRequest) bool {
	return crr.Completed(request) || request.DeletionTimestamp != nil
}

// holdsReadiness reports whether the request may still keep the pod not ready.
func holdsReadiness(request *v1beta1.ContainerRecreateRequest) bool {
	return slices.Contains(request.Finalizers, v1beta1.FinalizerUnreadyAcquired)
}

// observe reads the pod and the node. Only the API server is trusted to say that one of them does not exist, because
// the caches of requests, pods and nodes are not synchronized with each other.
func (r *lifecycleReconciler) observe(ctx context.Context, request *v1beta1.ContainerRecreateRequest) (lifecycle.Observation, error) {
	var observed lifecycle.Observation
	var err error
	if ended(request) && request.Labels[v1beta1.LabelActive] != "" {
		if observed.NodeBusy, err = r.nodeBusy(ctx, request); err != nil {
			return observed, err
		}
	}
	switch {
	case ended(request) && !holdsReadiness(request):
		return observed, nil
	case ended(request):
		// The cache may not show yet that the pod is kept not ready. After the finalizer is removed nothing would
		// release the pod.
		observed.Pod, err = r.pod(ctx, request, r.live)
		return observed, err
	}
	if observed.Pod, err = r.pod(ctx, request, r.client, r.live); err != nil {
		return observed, err
	}
	if node := request.Labels[v1beta1.LabelNodeName]; node != "" {
		found, err := r.nodes.Find(ctx, node)
		if err != nil {
			return observed, err
		}
		if observed.NodeGone = found == nil; observed.NodeGone {
			r.daemons.forget(node)
			return observed, nil
		}
	}
	if request.Status.Phase != "" {
		observed.NoDaemonSince, observed.KruiseDaemon, err = r.daemons.find(ctx, request, r.now())
	}
	return observed, err
}

// nodeBusy reports whether the node of the request has other requests that are not completed.
func (r *lifecycleReconciler) nodeBusy(ctx context.Context, request *v1beta1.ContainerRecreateRequest) (bool, error) {
	var list v1beta1.ContainerRecreateRequestList
	of := client.MatchingLabels{v1beta1.LabelNodeName: request.Labels[v1beta1.LabelNodeName], v1beta1.LabelActive: "true"}
	if err := r.client.List(ctx, &list, of, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list requests of node: %w", err)
	}
	return slices.ContainsFunc(list.Items, func(other v1beta1.ContainerRecreateRequest) bool { return !ended(&other) }), nil
}

// pod returns the pod of the request from the first reader that has it, or nil if none has it.
func (r *lifecycleReconciler) pod(ctx context.Context, request *v1beta1.ContainerRecreateRequest, readers ...client.Reader) (*corev1.Pod, error) {
	key := client.ObjectKey{Namespace: request.Namespace, Name: request.Spec.PodName}
	for _, reader := range readers {
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

// apply performs the write of a decision. Every write has the observed resourceVersion as precondition.
func (r *lifecycleReconciler) apply(ctx context.Context, request *v1beta1.ContainerRecreateRequest, pod *corev1.Pod, decision lifecycle.Decision) error {
	switch {
	case decision.Delete:
		observed := client.Preconditions{UID: &request.UID, ResourceVersion: &request.ResourceVersion}
		if err := r.client.Delete(ctx, request.DeepCopy(), observed); err != nil {
			return fmt.Errorf("delete request: %w", err)
		}
	case decision.Pod != nil:
		return patchPodStatus(ctx, r.client, pod, decision.Pod)
	case decision.Status != nil:
		changed := request.DeepCopy()
		changed.Status = *decision.Status
		patch := client.MergeFromWithOptions(request, client.MergeFromWithOptimisticLock{})
		if err := r.client.Status().Patch(ctx, changed, patch); err != nil {
			return fmt.Errorf("patch status of request: %w", err)
		}
	case decision.Meta != nil:
		changed := request.DeepCopy()
		changed.ObjectMeta = *decision.Meta
		patch := client.MergeFromWithOptions(request, client.MergeFromWithOptimisticLock{})
		if err := r.client.Patch(ctx, changed, patch); err != nil {
			return fmt.Errorf("patch labels and finalizers of request: %w", err)
		}
	}
	return nil
}
