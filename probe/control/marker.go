package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/conflict"
	faircontrol "github.com/refit-project/refit/internal/fair/control"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
	"github.com/refit-project/refit/probe/podprobe"
)

// markerDelay is the minimum time between two status writes of a marker that are caused by its pods: during a rollout
// of thousands of pods the status is written once per second.
const markerDelay = time.Second

// addMarkers adds the controller that writes the status of markers.
func addMarkers(mgr ctrl.Manager, a *api) error {
	r := &markerReconciler{api: a}
	return ctrl.NewControllerManagedBy(mgr).
		Named("podprobe-marker").
		For(&v1alpha1.PodProbeMarker{}, builder.WithPredicates(markerChanged())).
		Watches(&corev1.Pod{}, enqueue(markerDelay, r.markersOfPod)).
		Watches(&v1alpha1.PodProbeMarker{}, enqueue(markerDelay, r.markersBeside), builder.WithPredicates(markerChanged())).
		Watches(&v1alpha1.NodePodProbe{}, enqueue(markerDelay, r.markersOfNode)).
		Watches(&v1alpha1.NodePodProbe{}, enqueue(0, r.endingMarkers)).
		WithOptions(controller.Options{NewQueue: faircontrol.Queue}).
		Complete(guardcontrol.Reconciler(a.guard, a.client, &v1alpha1.PodProbeMarker{}, conflict.Reconciler(r)))
}

// markerReconciler writes the status of PodProbeMarkers.
type markerReconciler struct {
	*api
	// pruned says that the CRD drops the conditions of the status, as OpenKruise's does. The reconciler then keeps them
	// here, so that it only sends Events about changes.
	pruned     atomic.Bool
	conditions sync.Map // types.NamespacedName to []metav1.Condition
}

// Reconcile implements reconcile.Reconciler.
func (r *markerReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var marker v1alpha1.PodProbeMarker
	if err := r.client.Get(ctx, request.NamespacedName, &marker); err != nil {
		r.conditions.Delete(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if wait, err := r.omittedUnknown(ctx, &marker); err != nil || wait {
		return ctrl.Result{RequeueAfter: markerDelay}, err
	}
	write := r.writeStatus
	if marker.DeletionTimestamp != nil {
		write = r.removeFinalizer
	} else if !slices.Contains(marker.Finalizers, v1alpha1.FinalizerNodePodProbeCleanup) {
		write = r.addFinalizer
	}
	return ctrl.Result{}, client.IgnoreNotFound(write(ctx, &marker))
}

// omittedUnknown reports whether the status says that pods are left out while this process has just started and has not
// yet reconciled all nodes of the marker's pods. It then does not know which pods are left out.
func (r *markerReconciler) omittedUnknown(ctx context.Context, marker *v1alpha1.PodProbeMarker) (bool, error) {
	ready := meta.FindStatusCondition(marker.Status.Conditions, v1alpha1.ConditionPodProbeMarkerReady)
	if marker.DeletionTimestamp != nil || ready == nil || ready.Reason != podprobe.ReasonTooManyProbes {
		return false, nil
	}
	pods, err := r.listPods(ctx, client.InNamespace(marker.Namespace))
	if err != nil {
		return false, err
	}
	m, nodes := podprobe.NewMarker(marker), map[string]bool{}
	for _, pod := range pods {
		if node := pod.Spec.NodeName; m.Selects(pod) && podprobe.Probeable(pod) && !r.omitted.knows(node) {
			nodes[node] = true
		}
	}
	for node := range nodes {
		if exists, _, err := r.nodeKind(ctx, node); err != nil || exists {
			return exists, err
		}
	}
	return false, nil
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
	delayed, err := r.delayedNodes(ctx)
	if err != nil {
		return err
	}
	before, key := marker.DeepCopy(), client.ObjectKeyFromObject(marker)
	if kept, ok := r.conditions.Load(key); ok && r.pruned.Load() {
		before.Status.Conditions = kept.([]metav1.Condition) //nolint:forcetypeassert // nothing else is stored
	}
	probes, err := r.largeProbes(ctx, pods)
	if err != nil {
		return err
	}
	around := podprobe.Surroundings{Markers: all, Pods: pods, Omitted: r.omitted.all(), Probes: probes, Delayed: delayed}
	after := before.DeepCopy()
	after.Status = podprobe.Status(before, around, r.now())
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	if changed := after.DeepCopy(); !r.pruned.Load() || !sameCounts(before, after) {
		patch := client.MergeFromWithOptions(marker, client.MergeFromWithOptimisticLock{})
		if err := r.written("podprobemarkers", "patch status of marker", r.client.Status().Patch(ctx, changed, patch)); err != nil {
			return err
		}
		r.pruned.Store(len(changed.Status.Conditions) == 0)
	}
	if r.pruned.Load() {
		r.conditions.Store(key, after.Status.Conditions)
	}
	r.recordEvent(before, after)
	return nil
}

// sameCounts reports whether two statuses are equal apart from their conditions.
func sameCounts(a, b *v1alpha1.PodProbeMarker) bool {
	return a.Status.ObservedGeneration == b.Status.ObservedGeneration && a.Status.MatchedPods == b.Status.MatchedPods
}

// delayedNodes returns the nodes with more exec probes than they can run, with the message of their daemon.
func (r *markerReconciler) delayedNodes(ctx context.Context) (map[string]string, error) {
	var list v1alpha1.NodePodProbeList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list NodePodProbes: %w", err)
	}
	delayed := map[string]string{}
	for i := range list.Items {
		if c := delayOf(&list.Items[i]); c != "" {
			delayed[list.Items[i].Name] = c
		}
	}
	return delayed, nil
}

// delayOf returns the message of the condition Delayed if the condition is True.
func delayOf(object client.Object) string {
	node, ok := object.(*v1alpha1.NodePodProbe)
	if !ok || !meta.IsStatusConditionTrue(node.Status.Conditions, v1alpha1.ConditionProbesDelayed) {
		return ""
	}
	return meta.FindStatusCondition(node.Status.Conditions, v1alpha1.ConditionProbesDelayed).Message
}

// markersOfNode returns the markers in the namespaces with pods on a node whose condition Delayed has changed, or that
// has more probes than fit into its NodePodProbe. It also returns the markers of pods with other probes than before, which may have
// been left out, or are too large for the cache.
func (r *markerReconciler) markersOfNode(ctx context.Context, before, after client.Object) []ctrl.Request {
	either := after
	if either == nil {
		either = before
	}
	changedSpec := before == nil || after == nil || before.GetGeneration() != after.GetGeneration()
	namespaces := map[string]bool{}
	if changedSpec {
		namespaces = namespacesWithNewProbes(before, after)
	}
	if delayOf(before) != delayOf(after) || changedSpec && r.omitted.any(either.GetName()) {
		pods, err := r.listPods(ctx, client.MatchingFields{cache.PodsByNode: either.GetName()})
		if err != nil {
			r.log.Error("list pods of node", "node", either.GetName(), "err", err)
		}
		for _, pod := range pods {
			namespaces[pod.Namespace] = true
		}
	}
	var requests []ctrl.Request
	for namespace := range namespaces {
		markers, err := r.listMarkers(ctx, namespace)
		if err != nil {
			r.log.Error("list markers", "namespace", namespace, "err", err)
		}
		for _, m := range markers {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: m.Namespace, Name: m.Name}})
		}
	}
	return requests
}

// namespacesWithNewProbes returns the namespaces of the pods with probes of other names than in the earlier version of a NodePodProbe.
func namespacesWithNewProbes(before, after client.Object) map[string]bool {
	known, namespaces := map[string][]v1alpha1.ContainerProbe{}, map[string]bool{}
	if was, ok := before.(*v1alpha1.NodePodProbe); ok {
		for _, pod := range was.Spec.PodProbes {
			known[pod.UID] = pod.Probes
		}
	}
	sameName := func(a, b v1alpha1.ContainerProbe) bool { return a.Name == b.Name }
	if is, ok := after.(*v1alpha1.NodePodProbe); ok {
		for _, pod := range is.Spec.PodProbes {
			if probes, ok := known[pod.UID]; !ok || !slices.EqualFunc(probes, pod.Probes, sameName) {
				namespaces[pod.Namespace] = true
			}
		}
	}
	return namespaces
}

// recordEvent sends an Event when the condition Ready becomes False or Delayed becomes True, and when that ends.
func (r *markerReconciler) recordEvent(before, after *v1alpha1.PodProbeMarker) {
	for kind, bad := range map[string]metav1.ConditionStatus{
		v1alpha1.ConditionPodProbeMarkerReady: metav1.ConditionFalse, v1alpha1.ConditionProbesDelayed: metav1.ConditionTrue,
	} {
		was := meta.FindStatusCondition(before.Status.Conditions, kind)
		is := meta.FindStatusCondition(after.Status.Conditions, kind)
		switch {
		case is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason:
		case is.Status == bad:
			r.recorder.Eventf(after, nil, corev1.EventTypeWarning, is.Reason, "Probe", "%s", is.Message)
		case was != nil && was.Status == bad:
			r.recorder.Eventf(after, nil, corev1.EventTypeNormal, is.Reason, "Probe", "%s", cmp.Or(is.Message, "the probes run on time again"))
		}
	}
}

// markersBeside returns the markers in the namespace of a changed marker if together they may exceed the limit of a pod.
func (r *markerReconciler) markersBeside(ctx context.Context, before, after client.Object) []ctrl.Request {
	either := after
	if either == nil {
		either = before
	}
	markers, err := r.listMarkers(ctx, either.GetNamespace())
	if err != nil {
		r.log.Error("list markers", "namespace", either.GetNamespace(), "err", err)
	}
	if !podprobe.ExceedsPodLimit(append(slices.Clone(markers), markersOf(before)...)) {
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
