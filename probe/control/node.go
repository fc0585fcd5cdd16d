package control

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/conflict"
	"github.com/refit-project/refit/internal/guard"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
	"github.com/refit-project/refit/internal/managedfields"
	"github.com/refit-project/refit/probe/podprobe"
)

// nodeDelay is how long to wait after a change of a pod, so that simultaneous changes on a node cause one write.
const nodeDelay = 200 * time.Millisecond

// eventLeftOut is the reason of the Event about probes that do not fit into the object that would contain them.
const eventLeftOut = "ProbesLeftOut"

// addNodes adds the controller that writes NodePodProbes.
func addNodes(mgr ctrl.Manager, cfg Config, a *api) error {
	r := &nodeReconciler{api: a, empty: cfg.EmptyNodePodProbes}
	return ctrl.NewControllerManagedBy(mgr).
		Named("podprobe-node").
		For(&v1alpha1.NodePodProbe{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Pod{}, enqueueNames(nodeDelay, r.nodesOfPod)).
		Watches(&v1alpha1.PodProbeMarker{}, enqueueNames(nodeDelay, r.nodesOfMarker), builder.WithPredicates(markerChanged())).
		WatchesMetadata(&corev1.Node{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(nodeChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: cfg.Workers}).
		Complete(guardcontrol.Reconciler(a.guard, a.client, &v1alpha1.NodePodProbe{}, conflict.Reconciler(r)))
}

// nodeReconciler writes the NodePodProbe of each node.
type nodeReconciler struct {
	*api
	empty bool // create a NodePodProbe for every node, even without probes
}

// Reconcile implements reconcile.Reconciler. It computes the whole spec of one NodePodProbe.
func (r *nodeReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var existing v1alpha1.NodePodProbe
	err := r.client.Get(ctx, request.NamespacedName, &existing)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	missing := err != nil
	exists, virtual, err := r.nodeKind(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !exists && missing {
		r.omitted.forget(request.Name)
		return ctrl.Result{}, nil
	}
	if !exists {
		r.setOmitted(request.Name, nil)
		err := r.written("nodepodprobes", "delete NodePodProbe of a node that is gone", r.client.Delete(ctx, existing.DeepCopy(), client.Preconditions{UID: &existing.UID}))
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var spec v1alpha1.NodePodProbeSpec
	var omitted []*corev1.Pod
	if !virtual {
		if spec, omitted, err = r.spec(ctx, request.Name); err != nil {
			return ctrl.Result{}, err
		}
	}
	r.setOmitted(request.Name, omitted)
	if missing && virtual {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.write(ctx, request.Name, &existing, missing, spec)
}

// spec returns the probes of a node, and the pods whose probes are left out.
func (r *nodeReconciler) spec(ctx context.Context, node string) (v1alpha1.NodePodProbeSpec, []*corev1.Pod, error) {
	markers, err := r.listMarkers(ctx, "")
	if err != nil || len(markers) == 0 {
		return v1alpha1.NodePodProbeSpec{}, nil, err
	}
	pods, err := r.listPods(ctx, client.MatchingFields{cache.PodsByNode: node})
	if err != nil {
		return v1alpha1.NodePodProbeSpec{}, nil, err
	}
	large, err := r.largeSpecs(ctx, pods, markers)
	if err != nil {
		return v1alpha1.NodePodProbeSpec{}, nil, err
	}
	var spec v1alpha1.NodePodProbeSpec
	var omitted []*corev1.Pod
	_, err = guard.Sift(r.guard, "podprobes", pods, guard.OfType, func(pods []*corev1.Pod) { spec, omitted = podprobe.NodeSpec(pods, markers, large) })
	return spec, omitted, err
}

// setOmitted records which pods of a node are left out, and sends Events about the newly omitted ones. The fields that
// their probes have set on the pods are removed, and set again when the probes fit.
func (r *nodeReconciler) setOmitted(node string, omitted []*corev1.Pod) {
	added, changed := r.omitted.set(node, omitted)
	for _, pod := range added {
		r.log.Warn("pod is not probed: the probes of its node exceed what one NodePodProbe can hold", "pod", pod.Namespace+"/"+pod.Name, "node", node)
		r.recorder.Eventf(pod, nil, corev1.EventTypeWarning, eventLeftOut, "Probe",
			"Not probed: the probes of all pods of node %s exceed what one NodePodProbe can hold, and there is no space left for the probes of this pod", node)
	}
	for _, key := range changed {
		r.rewrite(key)
	}
}

func (r *nodeReconciler) write(ctx context.Context, node string, existing *v1alpha1.NodePodProbe, missing bool, spec v1alpha1.NodePodProbeSpec) error {
	switch {
	case missing && len(spec.PodProbes) == 0 && !r.empty, !missing && equality.Semantic.DeepEqual(existing.Spec, spec):
		return nil
	case missing:
		made := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: spec}
		return r.written("nodepodprobes", "create NodePodProbe", r.client.Create(ctx, made))
	}
	before := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node, ResourceVersion: existing.ResourceVersion}, Spec: existing.Spec}
	after := before.DeepCopy()
	after.Spec, after.ManagedFields = spec, managedfields.Untracked()
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return r.written("nodepodprobes", "patch NodePodProbe", r.client.Patch(ctx, after, patch))
}

// nodesOfPod returns the nodes of a pod before and after a change that affects its probes.
func (r *nodeReconciler) nodesOfPod(_ context.Context, before, after client.Object) []string {
	was, is := asPod(before), asPod(after)
	if was != nil && is != nil && sameProbes(was, is) {
		return nil
	}
	var nodes []string
	for _, pod := range []*corev1.Pod{was, is} {
		if pod != nil {
			nodes = append(nodes, cache.NodeOfPod(pod)...)
		}
	}
	return nodes
}

// sameProbes reports whether two versions of a pod are equal in everything that a node's probes depend on.
func sameProbes(a, b *corev1.Pod) bool {
	return a.UID == b.UID && podprobe.Probeable(a) == podprobe.Probeable(b) && a.Spec.NodeName == b.Spec.NodeName &&
		a.Status.PodIP == b.Status.PodIP && equality.Semantic.DeepEqual(a.Labels, b.Labels)
}

// nodesOfMarker returns the nodes of the pods that a marker selects, and the nodes whose NodePodProbe has probes of the
// marker.
func (r *nodeReconciler) nodesOfMarker(ctx context.Context, before, after client.Object) []string {
	either := after
	if either == nil {
		either = before
	}
	nodes := map[string]bool{}
	pods, err := r.listPods(ctx, client.InNamespace(either.GetNamespace()))
	if err != nil {
		r.log.Error("list pods of marker", "marker", client.ObjectKeyFromObject(either).String(), "err", err)
	}
	all := markersOf(before, after)
	for _, pod := range pods {
		if slices.ContainsFunc(all, func(m podprobe.Marker) bool { return m.Selects(pod) }) && podprobe.Probeable(pod) {
			nodes[pod.Spec.NodeName] = true
		}
	}
	var list v1alpha1.NodePodProbeList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		r.log.Error("list NodePodProbes", "err", err)
	}
	for i := range list.Items {
		if hasProbeOf(list.Items[i].Spec, either.GetNamespace(), either.GetName()) {
			nodes[list.Items[i].Name] = true
		}
	}
	names := make([]string, 0, len(nodes))
	for node := range nodes {
		names = append(names, node)
	}
	return names
}
