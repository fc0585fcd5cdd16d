package workload

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout/workload"
)

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// byTarget is the index of cached policies by their workload: "Deployment/web".
const byTarget = "spec.targetRef"

// Index adds the cache index that the controller uses. It must be called once, before the cache starts.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &v1alpha1.InPlaceUpdatePolicy{}, byTarget, targetOf); err != nil {
		return fmt.Errorf("index InPlaceUpdatePolicies by workload: %w", err)
	}
	return nil
}

func targetOf(object client.Object) []string {
	policy, ok := object.(*v1alpha1.InPlaceUpdatePolicy)
	if !ok {
		return nil
	}
	return []string{targetKey(policy.Spec.TargetRef.Kind, policy.Spec.TargetRef.Name)}
}

func targetKey(kind, name string) string { return kind + "/" + name }

// interest says which policies depend on objects that do not name their workload. It is safe for concurrent use.
type interest struct {
	mu sync.Mutex
	// owners are the policies by the controllers of their pods, and of the policies the controllers.
	owners map[types.UID]map[types.NamespacedName]bool
	of     map[types.NamespacedName]map[types.UID]bool
	// held are the policies that a PodDisruptionBudget of their namespace does not allow to go on.
	held map[string]map[types.NamespacedName]bool
}

func newInterest() *interest {
	return &interest{
		owners: map[types.UID]map[types.NamespacedName]bool{}, of: map[types.NamespacedName]map[types.UID]bool{}, held: map[string]map[types.NamespacedName]bool{},
	}
}

// own replaces the controllers of the pods of a policy.
func (i *interest) own(policy types.NamespacedName, owners map[types.UID]bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if maps.Equal(i.of[policy], owners) {
		return
	}
	for uid := range i.of[policy] {
		remove(i.owners, uid, policy)
	}
	for uid := range owners {
		add(i.owners, uid, policy)
	}
	if len(owners) == 0 {
		delete(i.of, policy)
	} else {
		i.of[policy] = owners
	}
}

// hold records whether a PodDisruptionBudget holds a policy.
func (i *interest) hold(policy types.NamespacedName, held bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if held {
		add(i.held, policy.Namespace, policy)
	} else {
		remove(i.held, policy.Namespace, policy)
	}
}

// in returns the held policies of a namespace, and the policies whose pods have this controller, if there is one.
func (i *interest) in(namespace string, owner types.UID) []types.NamespacedName {
	i.mu.Lock()
	defer i.mu.Unlock()
	keys := make([]types.NamespacedName, 0, len(i.held[namespace])+len(i.owners[owner]))
	keys = slices.AppendSeq(keys, maps.Keys(i.held[namespace]))
	if owner != "" {
		keys = slices.AppendSeq(keys, maps.Keys(i.owners[owner]))
	}
	return keys
}

func add[K comparable](to map[K]map[types.NamespacedName]bool, key K, policy types.NamespacedName) {
	if to[key] == nil {
		to[key] = map[types.NamespacedName]bool{}
	}
	to[key][policy] = true
}

func remove[K comparable](from map[K]map[types.NamespacedName]bool, key K, policy types.NamespacedName) {
	delete(from[key], policy)
	if len(from[key]) == 0 {
		delete(from, key)
	}
}

// on returns a handler that calls enqueue for all events of an object. Several events within a short time cause one or two
// reconciliations.
func on(enqueue func(context.Context, client.Object, queue)) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { enqueue(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, e.Object, q) },
	}
}

// podEvents returns a handler that enqueues the policies of the workload that controls a pod.
func (r *reconciler) podEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { r.onPod(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			r.lastPodEvent.Store(r.Clock().UnixNano())
			if !podChanged(e.ObjectOld, e.ObjectNew) {
				return
			}
			r.onPod(ctx, e.ObjectNew, q)
			if before, after := metav1.GetControllerOfNoCopy(e.ObjectOld), metav1.GetControllerOfNoCopy(e.ObjectNew); before != nil && (after == nil || before.UID != after.UID) {
				r.onPod(ctx, e.ObjectOld, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { r.onPod(ctx, e.Object, q) },
	}
}

// podChanged ignores updates of pods on which nothing depends. It relies on the cache to trim pods first: what it keeps shows all
// changes that matter, unless a pod is too large. Before Kubernetes 1.33 a change of the spec does not change the generation.
func podChanged(old, updated client.Object) bool {
	before, wasPod := old.(*corev1.Pod)
	after, isPod := updated.(*corev1.Pod)
	return !wasPod || !isPod || before.UID != after.UID || before.Generation != after.Generation ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) || !maps.Equal(before.Labels, after.Labels) ||
		!maps.Equal(before.Annotations, after.Annotations) || !workload.Comparable(after) ||
		after.Generation == 0 && !apiequality.Semantic.DeepEqual(&before.Spec, &after.Spec) || !apiequality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
		!apiequality.Semantic.DeepEqual(&before.Status, &after.Status)
}

func (r *reconciler) onPod(ctx context.Context, pod client.Object, q queue) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		owner = &metav1.OwnerReference{}
	}
	r.enqueue(q, r.interest.in(pod.GetNamespace(), owner.UID)...)
	switch owner.Kind {
	case "ReplicaSet": // a new one may not be known by its UID yet; its Deployment has named it
		if i := strings.LastIndexByte(owner.Name, '-'); i > 0 {
			r.enqueue(q, r.policiesOf(ctx, pod.GetNamespace(), "Deployment", owner.Name[:i])...)
		}
	case "StatefulSet", "DaemonSet":
		r.enqueue(q, r.policiesOf(ctx, pod.GetNamespace(), owner.Kind, owner.Name)...)
	}
}

// onRequest enqueues the policies of the pod of a request.
func (r *reconciler) onRequest(ctx context.Context, object client.Object, q queue) {
	request, ok := object.(*v1beta1.ContainerRecreateRequest)
	if !ok {
		return
	}
	var pod corev1.Pod
	key := client.ObjectKey{Namespace: request.Namespace, Name: request.Spec.PodName}
	if err := r.client.Get(ctx, key, &pod, client.UnsafeDisableDeepCopy); err != nil {
		r.onDisruption(ctx, object, q) // the pod may be gone
		return
	}
	r.onPod(ctx, &pod, q)
}

// onDisruption enqueues the policies that a PodDisruptionBudget of the namespace holds.
func (r *reconciler) onDisruption(_ context.Context, object client.Object, q queue) {
	r.enqueue(q, r.interest.in(object.GetNamespace(), "")...)
}

// onWorkload returns a handler that enqueues the policies of a workload of this kind.
func (r *reconciler) onWorkload(kind string) handler.EventHandler {
	return on(func(ctx context.Context, object client.Object, q queue) {
		r.enqueue(q, r.policiesOf(ctx, object.GetNamespace(), kind, object.GetName())...)
	})
}

// policyChanged ignores updates that only change the status, see policyEvents.
func policyChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return !onlyStatus(e) }}
}

func onlyStatus(e event.UpdateEvent) bool {
	old, updated := e.ObjectOld, e.ObjectNew
	return old.GetUID() == updated.GetUID() && old.GetGeneration() == updated.GetGeneration() && old.GetResourceVersion() != updated.GetResourceVersion() &&
		(old.GetDeletionTimestamp() == nil) == (updated.GetDeletionTimestamp() == nil) && slices.Equal(old.GetFinalizers(), updated.GetFinalizers()) &&
		maps.Equal(old.GetLabels(), updated.GetLabels()) && maps.Equal(old.GetAnnotations(), updated.GetAnnotations())
}

// policyEvents returns a handler that enqueues the other policies of the same workload when one is deleted. A policy whose status
// has changed, mostly by a write of this controller, is not reconciled at once, but together with the events of the pods that are
// written after it.
func (r *reconciler) policyEvents() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if onlyStatus(e) {
				r.enqueue(q, client.ObjectKeyFromObject(e.ObjectNew))
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if policy, ok := e.Object.(*v1alpha1.InPlaceUpdatePolicy); ok {
				r.enqueue(q, r.policiesOf(ctx, policy.Namespace, policy.Spec.TargetRef.Kind, policy.Spec.TargetRef.Name)...)
			}
		},
	}
}

// policiesOf returns the policies of a workload.
func (r *reconciler) policiesOf(ctx context.Context, namespace, kind, name string) []types.NamespacedName {
	list, err := r.sameTarget(ctx, namespace, kind, name)
	if err != nil {
		r.Logger.Error("list InPlaceUpdatePolicies", "namespace", namespace, "err", err)
	}
	keys := make([]types.NamespacedName, len(list))
	for i := range list {
		keys[i] = client.ObjectKeyFromObject(&list[i])
	}
	return keys
}

// sameTarget returns the policies of a workload from the cache. They must not be changed.
func (r *reconciler) sameTarget(ctx context.Context, namespace, kind, name string) ([]v1alpha1.InPlaceUpdatePolicy, error) {
	var list v1alpha1.InPlaceUpdatePolicyList
	options := []client.ListOption{client.InNamespace(namespace), client.MatchingFields{byTarget: targetKey(kind, name)}, client.UnsafeDisableDeepCopy}
	if err := r.client.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("list InPlaceUpdatePolicies of %s %s: %w", kind, name, err)
	}
	return list.Items, nil
}

func (r *reconciler) enqueue(q queue, keys ...types.NamespacedName) {
	for _, key := range keys {
		q.AddAfter(ctrl.Request{NamespacedName: key}, r.delay(key))
	}
}

// delay returns how long after an event to reconcile a policy: soon if it was not reconciled a moment ago, so that updates need not
// wait, and otherwise when more events may have come.
func (r *reconciler) delay(key types.NamespacedName) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.states[key]
	if s == nil {
		return gather
	}
	apart := min(gather, share*s.took)
	return max(soon, apart-r.Clock().Sub(s.began))
}
