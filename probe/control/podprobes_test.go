package control

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/test/kit/recorder"
	"github.com/refit-project/refit/test/kit/stalecache"
)

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestNodePodProbeFollowsMarkersAndPods(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), gameMarker("way"), gameMarker("gateway"), gamePod("a"), gamePod("b"))
	n := &nodeReconciler{api: w.api}
	wrote := func(n *nodeReconciler) []string { return w.settle(n, "", "node-1") }
	same(t, "first", wrote(n), "create node-1")
	same(t, "NodePodProbe", w.probesOfNode(), "a 10.0.0.1 gateway#idle", "a 10.0.0.1 way#idle", "b 10.0.0.1 gateway#idle", "b 10.0.0.1 way#idle")
	same(t, "nothing changed", wrote(n))

	w.remove(gameMarker("way"))
	same(t, "marker deleted", wrote(n), "patch node-1")
	same(t, "NodePodProbe", w.probesOfNode(), "a 10.0.0.1 gateway#idle", "b 10.0.0.1 gateway#idle")
	edit(w, gameMarker("gateway"), func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes[0].Name = "free" })
	same(t, "probe renamed", wrote(n), "patch node-1")
	same(t, "NodePodProbe", w.probesOfNode(), "a 10.0.0.1 gateway#free", "b 10.0.0.1 gateway#free")
	edit(w, gamePod("b"), func(p *corev1.Pod) { p.Labels["app"] = "web" })
	same(t, "pod relabelled", wrote(n), "patch node-1")
	same(t, "NodePodProbe", w.probesOfNode(), "a 10.0.0.1 gateway#free")
	moved := w.podNamed("a")
	moved.Status.PodIP = "10.0.0.9"
	if err := w.Client.Status().Update(t.Context(), moved); err != nil {
		t.Fatal(err)
	}
	same(t, "address changed", wrote(n), "patch node-1")
	same(t, "NodePodProbe", w.probesOfNode(), "a 10.0.0.9 gateway#free")
	w.remove(&v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})
	same(t, "deleted by hand", wrote(n), "create node-1")
	edit(w, &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, func(n *v1alpha1.NodePodProbe) {
		n.Spec.PodProbes = append(n.Spec.PodProbes, v1alpha1.PodProbe{Namespace: "shop", Name: "x", UID: "x"})
	})
	same(t, "written into by hand", wrote(n), "patch node-1")
	same(t, "NodePodProbe", w.probesOfNode(), "a 10.0.0.9 gateway#free")
	w.remove(gamePod("a"))
	same(t, "pod deleted", wrote(n), "patch node-1")
	same(t, "NodePodProbe", w.probesOfNode())
	w.remove(testNode())
	same(t, "node deleted", wrote(n), "delete node-1")
}

func TestPodOnVirtualNodeGetsProbesAsAnnotation(t *testing.T) {
	t.Parallel()
	virtual := testNode()
	virtual.Labels = map[string]string{"type": "virtual-kubelet"}
	w := newAPIServer(t, virtual, gameMarker("m"), gamePod("a"))
	same(t, "writes", w.settle(&nodeReconciler{api: w.api}, "", "node-1"))
	m := newPodDestination(w.api)
	same(t, "writes", w.settle(writing{m}, "shop", "a"), "apply status a")
	pod := w.podNamed("a")
	if pod.Annotations["kruise.io/podprobemarker-list"] != "m" || !strings.HasPrefix(pod.Annotations["kruise.io/podprobe"], `[{"name":"idle"`) {
		t.Errorf("annotations %v", pod.Annotations)
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "game.kruise.io/m", Status: corev1.ConditionTrue})
	if err := w.Client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	same(t, "writes", w.settle(writing{m}, "shop", "a"), "apply status a")
	if pod = w.podNamed("a"); pod.Labels["m"] != "idle" {
		t.Errorf("labels %v", pod.Labels)
	}
}

func TestProbesThatExceedTheAnnotationAreReportedOnce(t *testing.T) {
	t.Parallel()
	virtual := testNode()
	virtual.Labels = map[string]string{"type": "virtual-kubelet"}
	w := newAPIServer(t, virtual, largeMarker("m"), gamePod("a"))
	m := newPodDestination(w.api)
	same(t, "writes", w.settle(writing{m}, "shop", "a"), "apply status a")
	event := recorder.Next(w.events)
	if !strings.Contains(event, "Warning ProbesLeftOut") || !strings.Contains(event, "94 probes are left out") || !strings.Contains(event, ": m#p6, m#p7, ") || len(event) > 1024 {
		t.Errorf("event %q", event)
	}
	pod := w.podNamed("a")
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "example.com/p0", Status: corev1.ConditionTrue})
	if err := w.Client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	same(t, "writes", w.settle(writing{m}, "shop", "a"), "apply status a")
	if event := recorder.Next(w.events); event != "" {
		t.Errorf("another event %q", event)
	}
}

// A marker whose pods were relabelled still has probes on their nodes.
func TestDeletedMarkerEnqueuesNodesOfRelabelledPods(t *testing.T) {
	t.Parallel()
	stray := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "node-7"}}
	stray.Spec.PodProbes = []v1alpha1.PodProbe{{Namespace: "shop", Name: "z", UID: "z", Probes: []v1alpha1.ContainerProbe{{Name: "way#idle"}}}}
	other := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "node-8"}}
	other.Spec.PodProbes = []v1alpha1.PodProbe{
		{Namespace: "shop", Name: "y", UID: "y", Probes: []v1alpha1.ContainerProbe{{Name: "gateway#idle"}}},
		{Namespace: "bank", Name: "z", UID: "x", Probes: []v1alpha1.ContainerProbe{{Name: "way#idle"}}},
	}
	w := newAPIServer(t, stray, other, gamePod("a"))
	nodes := (&nodeReconciler{api: w.api}).nodesOfMarker(t.Context(), gameMarker("way"), nil)
	slices.Sort(nodes)
	same(t, "nodes", nodes, "node-1", "node-7")
}

func TestProbesThatExceedTheNodePodProbeAreReported(t *testing.T) {
	t.Parallel()
	small := gameMarker("s")
	small.Spec.Selector.MatchLabels["app"] = "small"
	modest := gamePod("modest")
	modest.Labels["app"] = "small"
	w := newAPIServer(t, testNode(), largeMarker("m"), small, gamePod("greedy"), modest)
	same(t, "writes", w.settle(&nodeReconciler{api: w.api}, "", "node-1"), "create node-1")
	same(t, "NodePodProbe", w.probesOfNode(), "modest 10.0.0.1 s#idle")
	if event := recorder.Next(w.events); !strings.Contains(event, "Warning ProbesLeftOut") {
		t.Errorf("event %q", event)
	}
}

func TestNodesOfPod(t *testing.T) {
	t.Parallel()
	n := &nodeReconciler{}
	for name, tc := range map[string]struct {
		edit func(*corev1.Pod)
		want []string
	}{
		"readiness":  {edit: func(p *corev1.Pod) { p.Status.Conditions[0].Status = "False" }},
		"labels":     {edit: func(p *corev1.Pod) { p.Labels["a"] = "b" }, want: []string{"node-1", "node-1"}},
		"address":    {edit: func(p *corev1.Pod) { p.Status.PodIP = "" }, want: []string{"node-1", "node-1"}},
		"ended":      {edit: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, want: []string{"node-1", "node-1"}},
		"replaced":   {edit: func(p *corev1.Pod) { p.UID = "other" }, want: []string{"node-1", "node-1"}},
		"other node": {edit: func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }, want: []string{"node-1", "node-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := gamePod("a")
			tc.edit(after)
			same(t, "nodes", n.nodesOfPod(t.Context(), trimmed(t, gamePod("a")), trimmed(t, after)), tc.want...)
		})
	}
	same(t, "new pod", n.nodesOfPod(t.Context(), nil, gamePod("a")), "node-1")
	same(t, "pod gone", n.nodesOfPod(t.Context(), gamePod("a"), nil), "node-1")
}

func TestChangedResultIsOneWriteToThePod(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), gameMarker("m"), gameMarker("n"), gamePod("a"))
	m := newPodDestination(w.api)
	same(t, "nothing said", w.settle(writing{m}, "shop", "a"))
	for _, tc := range []struct {
		state  v1alpha1.ProbeState
		status corev1.ConditionStatus
		label  string
		cost   string
	}{{v1alpha1.ProbeFailed, "False", "busy", "1"}, {v1alpha1.ProbeSucceeded, "True", "idle", ""}} {
		w.report(results("a", tc.state, "m#idle", "n#idle"))
		same(t, "writes", w.settle(writing{m}, "shop", "a"), "apply status a")
		pod := w.podNamed("a")
		if got := pod.Status.Conditions; len(got) != 4 || got[2].Status != tc.status || got[3].Status != tc.status {
			t.Errorf("conditions %+v", got)
		}
		if pod.Labels["m"] != tc.label || pod.Labels["n"] != tc.label || pod.Annotations["cost"] != tc.cost || pod.Spec.NodeName != "node-1" {
			t.Errorf("labels %v, annotations %v", pod.Labels, pod.Annotations)
		}
	}
	w.remove(gameMarker("m"))
	same(t, "marker gone", w.settle(writing{m}, "shop", "a"), "apply status a")
	w.remove(gameMarker("n"))
	same(t, "both gone", w.settle(writing{m}, "shop", "a"), "apply status a")
	if pod := w.podNamed("a"); len(pod.Labels) != 1 || len(pod.Status.Conditions) != 2 {
		t.Errorf("left behind: %v, %+v", pod.Labels, pod.Status.Conditions)
	}
}

// Server-side apply removes what is not applied again: nothing may be decided by a cache that is behind our own write.
func TestPodIsNotPatchedFromACacheOlderThanTheLastWrite(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), gameMarker("m"), gamePod("a"))
	m := newPodDestination(w.api)
	stale := w.podNamed("a")
	w.report(results("a", v1alpha1.ProbeSucceeded, "m#idle"))
	w.settle(writing{m}, "shop", "a")
	m.client = stalecache.Client{Client: w.Client, Object: stale}
	w.report(results("a", v1alpha1.ProbeFailed, "m#idle"))
	same(t, "behind", w.settle(writing{m}, "shop", "a"))
	m.client = w.Client
	same(t, "caught up", w.settle(writing{m}, "shop", "a"), "apply status a")
}

func TestResultsOfAReplacedPodAreIgnored(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), gameMarker("m"), gamePod("a"))
	m := newPodDestination(w.api)
	status := results("a", v1alpha1.ProbeSucceeded, "m#idle")
	status.UID = "the one before"
	w.report(status)
	same(t, "writes", w.settle(writing{m}, "shop", "a"))
}

func TestOnlyPodsWithChangedResultsAreEnqueued(t *testing.T) {
	t.Parallel()
	m := &podReconciler{}
	object := func(statuses ...v1alpha1.PodProbeStatus) *v1alpha1.NodePodProbe {
		return &v1alpha1.NodePodProbe{Status: v1alpha1.NodePodProbeStatus{PodProbeStatuses: statuses}}
	}
	names := func(requests []ctrl.Request) (list []string) {
		for _, r := range requests {
			list = append(list, r.Name)
		}
		return list
	}
	before := object(results("a", v1alpha1.ProbeSucceeded, "m#idle"), results("b", v1alpha1.ProbeSucceeded, "m#idle"), results("c", v1alpha1.ProbeFailed))
	after := object(results("a", v1alpha1.ProbeSucceeded, "m#idle"), results("b", v1alpha1.ProbeFailed, "m#idle"), results("d", v1alpha1.ProbeFailed))
	same(t, "changed", names(m.podsWithNewResults(t.Context(), before, after)), "b", "d")
	same(t, "at the start", names(m.podsWithNewResults(t.Context(), nil, before)), "a", "b", "c")
	same(t, "deleted", names(m.podsWithNewResults(t.Context(), before, nil)))
}

func TestConflictIsReturned(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), gameMarker("m"), gamePod("a"))
	n := &nodeReconciler{api: w.api}
	w.settle(n, "", "node-1")
	w.remove(gameMarker("m"))
	n.client = conflicting{Client: w.Client}
	if result, err := n.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "node-1"}}); !apierrors.IsConflict(err) {
		t.Errorf("%+v, %v", result, err)
	}
}

type conflicting struct{ client.Client }

func (conflicting) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "nodepodprobes"}, "node-1", nil)
}

func TestIrrelevantUpdatesAreFiltered(t *testing.T) {
	t.Parallel()
	virtual := testNode()
	virtual.Labels = map[string]string{"type": "virtual-kubelet"}
	if nodeChanged().Update(event.UpdateEvent{ObjectOld: testNode(), ObjectNew: testNode()}) ||
		!nodeChanged().Update(event.UpdateEvent{ObjectOld: testNode(), ObjectNew: virtual}) ||
		!nodeChanged().Create(event.CreateEvent{Object: virtual}) || !nodeChanged().Delete(event.DeleteEvent{Object: virtual}) {
		t.Error("of nodes, the end and the change to a virtual one matter")
	}
	status, spec := gameMarker("m"), gameMarker("m")
	status.Status.MatchedPods, spec.Generation = 1, 2
	if markerChanged().Update(event.UpdateEvent{ObjectOld: gameMarker("m"), ObjectNew: status}) ||
		!markerChanged().Update(event.UpdateEvent{ObjectOld: gameMarker("m"), ObjectNew: spec}) {
		t.Error("of markers, the spec matters")
	}
}
