package podprobes

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/manager/cache"
	"github.com/refit-project/refit/podprobe"
)

// nodeDelay collects changes of the pods of a node that happen at the same time into one write.
const nodeDelay = 200 * time.Millisecond

// eventLeftOut is the reason of the Event about probes that do not fit into the object which would carry them.
const eventLeftOut = "ProbesLeftOut"

// addNodes adds the controller of NodePodProbes.
func addNodes(mgr ctrl.Manager, cfg Config, a *api) error {
	r := &nodeReconciler{api: a, empty: cfg.EmptyNodePodProbes}
	return ctrl.NewControllerManagedBy(mgr).
		Named("podprobe-node").
		For(&v1alpha1.NodePodProbe{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Pod{}, enqueueNames(nodeDelay, r.nodesOfPod)).
		Watches(&v1alpha1.PodProbeMarker{}, enqueueNames(nodeDelay, r.nodesOfMarker), builder.WithPredicates(markerChanged())).
		WatchesMetadata(&corev1.Node{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(nodeChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: cfg.Workers}).
		Complete(r)
}

// nodeReconciler writes the NodePodProbe of each node.
type nodeReconciler struct {
	*api
	empty bool // a node has its NodePodProbe before there is something to probe
}

// Reconcile implements reconcile.Reconciler: it computes the whole spec of one node.
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
		r.omitted.Forget(request.Name)
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
	err = r.write(ctx, request.Name, &existing, missing, spec)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, err
}

// spec returns the probes of a node, and the pods that are left out.
func (r *nodeReconciler) spec(ctx context.Context, node string) (v1alpha1.NodePodProbeSpec, []*corev1.Pod, error) {
	markers, err := r.listMarkers(ctx, "")
	if err != nil || len(markers) == 0 {
		return v1alpha1.NodePodProbeSpec{}, nil, err
	}
	pods, err := r.listPods(ctx, client.MatchingFields{cache.PodsByNode: node})
	if err != nil {
		return v1alpha1.NodePodProbeSpec{}, nil, err
	}
	spec, omitted := podprobe.NodeSpec(pods, markers)
	return spec, omitted, nil
}

// setOmitted takes over which pods of a node are left out, and reports those that were not. What is on the pods of their probes is
// removed, and set again when they have a place.
func (r *nodeReconciler) setOmitted(node string, omitted []*corev1.Pod) {
	added, changed := r.omitted.Set(node, omitted)
	for _, pod := range added {
		r.log.Warn("pod is not probed: the probes of its node exceed what one NodePodProbe can hold", "pod", pod.Namespace+"/"+pod.Name, "node", node)
		r.recorder.Eventf(pod, nil, corev1.EventTypeWarning, eventLeftOut, "Probe",
			"Not probed: the probes of all pods of node %s exceed what one NodePodProbe can hold, and there is no space left for those of this pod", node)
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
	after.Spec = spec
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return r.written("nodepodprobes", "patch NodePodProbe", r.client.Patch(ctx, after, patch))
}

// nodesOfPod returns the nodes of a pod before and after a change of what its probes depend on.
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

// sameProbes reports whether nothing differs that a node's probes depend on.
func sameProbes(a, b *corev1.Pod) bool {
	return a.UID == b.UID && podprobe.Probeable(a) == podprobe.Probeable(b) && a.Spec.NodeName == b.Spec.NodeName &&
		a.Status.PodIP == b.Status.PodIP && equality.Semantic.DeepEqual(a.Labels, b.Labels)
}

// nodesOfMarker returns the nodes of the pods that a marker selects, and those whose NodePodProbe has probes of it.
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
	all := compileEither(before, after)
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

// hasProbeOf reports whether a spec has a probe of the marker, by exact name and namespace.
func hasProbeOf(spec v1alpha1.NodePodProbeSpec, namespace, name string) bool {
	return slices.ContainsFunc(spec.PodProbes, func(pod v1alpha1.PodProbe) bool {
		return pod.Namespace == namespace && slices.ContainsFunc(pod.Probes, func(probe v1alpha1.ContainerProbe) bool {
			marker, ok := podprobe.MarkerOf(probe.Name)
			return ok && marker == name
		})
	})
}
