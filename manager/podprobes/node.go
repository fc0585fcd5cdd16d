package manager

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/podprobe"
)

// nodeDelay is for what happens to the pods of a node at the same time to become one write.
const nodeDelay = 200 * time.Millisecond

// eventLeftOut is the reason of the Event about a pod for whose probes its node has no room.
const eventLeftOut = "ProbesLeftOut"

// addNodeProbes writes the NodePodProbes.
func addNodeProbes(mgr ctrl.Manager, cfg Config, p *probes) error {
	n := &nodeProbes{probes: p}
	return ctrl.NewControllerManagedBy(mgr).
		Named("podprobe-node").
		For(&v1alpha1.NodePodProbe{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Pod{}, delayed(nodeDelay, n.nodesOfPod)).
		Watches(&v1alpha1.PodProbeMarker{}, delayed(nodeDelay, n.nodesOfMarker), builder.WithPredicates(markerChanged())).
		WatchesMetadata(&corev1.Node{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(nodeChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: cfg.Workers}).
		Complete(n)
}

// nodeProbes tells each node what to probe.
type nodeProbes struct{ *probes }

// Reconcile implements reconcile.Reconciler: the whole spec of one node.
func (n *nodeProbes) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var there v1alpha1.NodePodProbe
	err := n.client.Get(ctx, request.NamespacedName, &there)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	missing := err != nil
	exists, virtual, err := n.virtual(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !exists {
		if missing {
			return ctrl.Result{}, nil
		}
		err := n.wrote("nodepodprobes", "delete probes of a node that is gone", n.client.Delete(ctx, there.DeepCopy(), client.Preconditions{UID: &there.UID}))
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var spec v1alpha1.NodePodProbeSpec
	if !virtual {
		if spec, err = n.spec(ctx, request.Name); err != nil {
			return ctrl.Result{}, err
		}
	}
	err = n.write(ctx, request.Name, &there, missing, spec)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, err
}

func (n *nodeProbes) spec(ctx context.Context, node string) (v1alpha1.NodePodProbeSpec, error) {
	markers, err := n.markers(ctx, "")
	if err != nil || len(markers) == 0 {
		return v1alpha1.NodePodProbeSpec{}, err
	}
	pods, err := n.pods(ctx, client.MatchingFields{byNode: node})
	if err != nil {
		return v1alpha1.NodePodProbeSpec{}, err
	}
	spec, left := podprobe.NodeSpec(pods, markers)
	for _, pod := range left {
		n.log.Warn("pod not probed: the probes of its node do not fit into one NodePodProbe", "pod", pod.Namespace+"/"+pod.Name, "node", node)
		n.recorder.Eventf(pod, nil, corev1.EventTypeWarning, eventLeftOut, "Probe",
			"Not probed: the probes of all pods of node %s do not fit into one NodePodProbe, and those of this pod are among the largest", node)
	}
	return spec, nil
}

func (n *nodeProbes) write(ctx context.Context, node string, there *v1alpha1.NodePodProbe, missing bool, spec v1alpha1.NodePodProbeSpec) error {
	switch {
	case missing && len(spec.PodProbes) == 0, !missing && equality.Semantic.DeepEqual(there.Spec, spec):
		return nil
	case missing:
		made := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: spec}
		return n.wrote("nodepodprobes", "create probes of node", n.client.Create(ctx, made))
	}
	before := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node, ResourceVersion: there.ResourceVersion}, Spec: there.Spec}
	after := before.DeepCopy()
	after.Spec = spec
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return n.wrote("nodepodprobes", "change probes of node", n.client.Patch(ctx, after, patch))
}

// nodesOfPod is the node of a pod that has changed in what its probes depend on.
func (n *nodeProbes) nodesOfPod(_ context.Context, before, after client.Object) []string {
	was, is := asPod(before), asPod(after)
	if was != nil && is != nil && sameToNode(was, is) {
		return nil
	}
	var nodes []string
	for _, pod := range []*corev1.Pod{was, is} {
		if pod != nil {
			nodes = append(nodes, nodeOfPod(pod)...)
		}
	}
	return nodes
}

// sameToNode reports whether nothing has changed that a node's probes depend on.
func sameToNode(a, b *corev1.Pod) bool {
	return a.UID == b.UID && podprobe.Probed(a) == podprobe.Probed(b) && a.Spec.NodeName == b.Spec.NodeName &&
		a.Status.PodIP == b.Status.PodIP && equality.Semantic.DeepEqual(a.Labels, b.Labels)
}

// nodesOfMarker are those of the pods it selects, and those that have been told to probe for it.
func (n *nodeProbes) nodesOfMarker(ctx context.Context, before, after client.Object) []string {
	either := after
	if either == nil {
		either = before
	}
	nodes := map[string]bool{}
	pods, err := n.pods(ctx, client.InNamespace(either.GetNamespace()))
	if err != nil {
		n.log.Error("pods of a marker not listed", "marker", client.ObjectKeyFromObject(either).String(), "err", err)
	}
	all := selectors(before, after)
	for _, pod := range pods {
		if slices.ContainsFunc(all, func(m podprobe.Marker) bool { return m.Selects(pod) }) && podprobe.Probed(pod) {
			nodes[pod.Spec.NodeName] = true
		}
	}
	var told v1alpha1.NodePodProbeList
	if err := n.client.List(ctx, &told, client.UnsafeDisableDeepCopy); err != nil {
		n.log.Error("probes of nodes not listed", "err", err)
	}
	for i := range told.Items {
		if namesMarker(told.Items[i].Spec, either.GetNamespace(), either.GetName()) {
			nodes[told.Items[i].Name] = true
		}
	}
	names := make([]string, 0, len(nodes))
	for node := range nodes {
		names = append(names, node)
	}
	return names
}

// namesMarker reports whether a spec has a probe of the marker, by its exact name and namespace.
func namesMarker(spec v1alpha1.NodePodProbeSpec, namespace, name string) bool {
	return slices.ContainsFunc(spec.PodProbes, func(pod v1alpha1.PodProbe) bool {
		return pod.Namespace == namespace && slices.ContainsFunc(pod.Probes, func(probe v1alpha1.ContainerProbe) bool {
			marker, ok := podprobe.MarkerOf(probe.Name)
			return ok && marker == name
		})
	})
}

// selectors are the markers before and after a change as far as they exist, so that the pods of both are found.
func selectors(objects ...client.Object) []podprobe.Marker {
	var all []v1alpha1.PodProbeMarker
	for _, object := range objects {
		if marker, ok := object.(*v1alpha1.PodProbeMarker); ok && marker != nil {
			alive := *marker
			alive.DeletionTimestamp = nil
			all = append(all, alive)
		}
	}
	return podprobe.Compile(all)
}

func asPod(object client.Object) *corev1.Pod {
	pod, _ := object.(*corev1.Pod)
	return pod
}

// markerChanged drops changes of the status.
func markerChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	}}
}

// nodeChanged drops heartbeats and new nodes, which have no pods yet.
func nodeChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return podprobe.Virtual(e.ObjectOld.GetLabels()) != podprobe.Virtual(e.ObjectNew.GetLabels()) ||
				(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
		},
	}
}

// delayed asks for the named cluster-scoped objects, a while after the change. One that is asked for already is looked
// at once. Both objects of a change are given; that before is nil for one that is new, that after for one that is gone.
func delayed(by time.Duration, of func(ctx context.Context, before, after client.Object) []string) handler.EventHandler {
	return asked(by, func(ctx context.Context, before, after client.Object) []ctrl.Request {
		var requests []ctrl.Request
		for _, name := range of(ctx, before, after) {
			requests = append(requests, ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
		return requests
	})
}

func asked(by time.Duration, of func(ctx context.Context, before, after client.Object) []ctrl.Request) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	add := func(ctx context.Context, q queue, before, after client.Object) {
		for _, request := range of(ctx, before, after) {
			q.AddAfter(request, by)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, nil, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object, nil) },
	}
}
