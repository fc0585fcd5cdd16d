package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/test/kit/recorder"
)

// namesOf are the names in requests, sorted.
func namesOf(requests []ctrl.Request) (names []string) {
	for _, r := range requests {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return names
}

func TestPodIsLookedAtIfWhatItCarriesHasChanged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   int
	}{
		"nothing":                   {func(*corev1.Pod) {}, 0},
		"a container has restarted": {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount++ }, 0},
		"another of its name":       {func(p *corev1.Pod) { p.UID = "another" }, 1},
		"scheduled":                 {func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }, 1},
		"labels":                    {func(p *corev1.Pod) { p.Labels["m"] = "idle" }, 1},
		"annotations":               {func(p *corev1.Pod) { p.Annotations = map[string]string{"cost": "1"} }, 1},
		"conditions":                {func(p *corev1.Pod) { p.Status.Conditions = p.Status.Conditions[:1] }, 1},
		"what is owned": {func(p *corev1.Pod) {
			p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "refit"}}
		}, 1},
	} {
		r := newPodReconciler(newAPIServer(t).api, 1)
		after := gamePod("a")
		tc.change(after)
		if got := r.changedPod(t.Context(), gamePod("a"), after); len(got) != tc.want {
			t.Errorf("%s: %v, want %d", name, got, tc.want)
		}
	}
	r := newPodReconciler(newAPIServer(t).api, 1)
	same(t, "a new pod", namesOf(r.changedPod(t.Context(), nil, gamePod("a"))), "a")
}

// owning lists the pod "owned" with fields that Refit has applied, which the fake client does not keep.
type owning struct{ client.Client }

func (o owning) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := o.Client.List(ctx, list, opts...)
	if pods, ok := list.(*corev1.PodList); ok {
		for i := range pods.Items {
			if pods.Items[i].Name == "owned" {
				pods.Items[i].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "refit"}}
			}
		}
	}
	return err
}

func TestPodsOfAMarkerAreThoseThatItSelectsOrHasSelected(t *testing.T) {
	t.Parallel()
	labelled := func(name, namespace, app string) *corev1.Pod {
		pod := gamePod(name)
		pod.Namespace, pod.Labels["app"] = namespace, app
		return pod
	}
	w := newAPIServer(t, labelled("game", "shop", "game"), labelled("web", "shop", "web"), labelled("owned", "shop", "other"),
		labelled("none", "shop", "other"), labelled("elsewhere", "bank", "game"))
	w.client = owning{w.Client}
	r := newPodReconciler(w.api, 1)
	web := gameMarker("m")
	web.Spec.Selector.MatchLabels["app"] = "web"
	ending := gameMarker("m")
	ending.DeletionTimestamp = new(metav1.Now())
	same(t, "new", namesOf(r.podsOfMarker(t.Context(), nil, gameMarker("m"))), "game", "owned")
	same(t, "deleted", namesOf(r.podsOfMarker(t.Context(), gameMarker("m"), nil)), "game", "owned")
	same(t, "being deleted", namesOf(r.podsOfMarker(t.Context(), gameMarker("m"), ending)), "game", "owned")
	same(t, "gone at last", namesOf(r.podsOfMarker(t.Context(), ending, nil)), "game", "owned")
	same(t, "with another selector", namesOf(r.podsOfMarker(t.Context(), gameMarker("m"), web)), "game", "owned", "web")
}

func TestMarkersOfANodeWhosePodsAreLeftOut(t *testing.T) {
	t.Parallel()
	elsewhere := gamePod("b")
	elsewhere.Spec.NodeName, elsewhere.Namespace = "node-2", "bank"
	there := gameMarker("there")
	there.Namespace = "bank"
	w := newAPIServer(t, gameMarker("m"), there, gamePod("a"), elsewhere)
	r := &markerReconciler{api: w.api}
	before := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Generation: 1}}
	after := before.DeepCopy()
	after.Generation = 2
	all := func() string {
		return fmt.Sprint(namesOf(r.markersOfNode(t.Context(), nil, after)), namesOf(r.markersOfNode(t.Context(), before, after)),
			namesOf(r.markersOfNode(t.Context(), after, after)), namesOf(r.markersOfNode(t.Context(), after, nil)))
	}
	if got := all(); got != "[] [] [] []" {
		t.Errorf("created, changed, the same, deleted: %s without a pod that is left out", got)
	}
	w.omitted.set("node-1", []*corev1.Pod{gamePod("a")})
	if got := all(); got != "[m] [m] [] [m]" {
		t.Errorf("created, changed, the same, deleted: %s with one", got)
	}
	w.omitted.set("node-1", nil)
	again := after.DeepCopy()
	again.Generation = 3
	again.Spec.PodProbes = []v1alpha1.PodProbe{{Namespace: "bank", Name: "b", UID: "uid-b"}}
	same(t, "there is space again", namesOf(r.markersOfNode(t.Context(), after, again)), "there")
	later := again.DeepCopy()
	later.Generation = 4
	same(t, "the same pods", namesOf(r.markersOfNode(t.Context(), again, later)))
	delayed := before.DeepCopy()
	delayed.Status.Conditions = []metav1.Condition{{Type: "Delayed", Status: "True", Reason: "ProbesDelayed", Message: "3 times"}}
	same(t, "a delayed node is gone", namesOf(r.markersOfNode(t.Context(), delayed, nil)), "m")
}

func TestPredicates(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(client.Object){
		"spec":          func(o client.Object) { o.SetGeneration(7) },
		"created again": func(o client.Object) { o.SetUID("another") },
		"being deleted": func(o client.Object) { o.SetDeletionTimestamp(new(metav1.Now())) },
	} {
		after := gameMarker("m")
		if change(after); !markerChanged().Update(event.UpdateEvent{ObjectOld: gameMarker("m"), ObjectNew: after}) {
			t.Errorf("marker, %s: dropped", name)
		}
	}
	ending := testNode()
	ending.DeletionTimestamp = new(metav1.Now())
	if nodeChanged().Update(event.UpdateEvent{ObjectOld: testNode(), ObjectNew: ending}) {
		t.Error("that a node begins to end, with which nothing changes, is not dropped")
	}
	virtual := testNode()
	virtual.Labels = map[string]string{"type": "virtual-kubelet"}
	if !nodeChanged().Update(event.UpdateEvent{ObjectOld: testNode(), ObjectNew: virtual}) {
		t.Error("that a node becomes virtual is dropped")
	}
	if !nodeChanged().Delete(event.DeleteEvent{Object: testNode()}) {
		t.Error("the end of a node is dropped")
	}
}

// delays notes what is added to a queue.
type delays struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]
	added []string
}

func (d *delays) AddAfter(request ctrl.Request, delay time.Duration) {
	d.added = append(d.added, fmt.Sprint(request.Name, " ", delay))
}

func TestWatchesPassBothStatesOfAnObject(t *testing.T) {
	t.Parallel()
	h := enqueueNames(time.Second, func(_ context.Context, before, after client.Object) (names []string) {
		for i, object := range []client.Object{before, after} {
			if object != nil {
				names = append(names, [2]string{"before-", "after-"}[i]+object.GetName())
			}
		}
		return names
	})
	q := &delays{}
	h.Create(t.Context(), event.CreateEvent{Object: gamePod("a")}, q)
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: gamePod("b"), ObjectNew: gamePod("c")}, q)
	h.Delete(t.Context(), event.DeleteEvent{Object: gamePod("d")}, q)
	same(t, "added", q.added, "after-a 1s", "before-b 1s", "after-c 1s", "before-d 1s")
}

func TestPodThatIsEndingGetsNoResults(t *testing.T) {
	t.Parallel()
	pod := gamePod("a")
	pod.Finalizers = []string{"example.com/other"}
	w := newAPIServer(t, testNode(), gameMarker("m"), pod)
	d := newPodDestination(w.api)
	w.report(results("a", v1alpha1.ProbeFailed, "m#idle"))
	same(t, "writes", w.settle(writing{d}, "shop", "a"), "apply status a")
	w.remove(pod)
	w.report(results("a", v1alpha1.ProbeSucceeded, "m#idle"))
	same(t, "writes of a pod that is ending", w.settle(writing{d}, "shop", "a"))
	edit(w, pod, func(p *corev1.Pod) { p.Finalizers = nil })
	same(t, "writes of a pod that is gone", w.settle(writing{d}, "shop", "a"))
	if len(d.applied) > 0 {
		t.Errorf("remembered: %v", d.applied)
	}
}

func TestNodeThatIsGoneOrBecomesVirtualIsNotProbed(t *testing.T) {
	t.Parallel()
	node := testNode()
	node.Finalizers = []string{"example.com/other"}
	w := newAPIServer(t, node, gameMarker("m"), gamePod("a"))
	n := &nodeReconciler{api: w.api}
	same(t, "writes", w.settle(n, "", "node-1"), "create node-1")
	edit(w, node, func(n *corev1.Node) { n.Labels = map[string]string{"type": "virtual-kubelet"} })
	same(t, "writes for a virtual node", w.settle(n, "", "node-1"), "patch node-1")
	same(t, "NodePodProbe", w.probesOfNode())
	edit(w, node, func(n *corev1.Node) { n.Labels = nil })
	same(t, "writes for an ordinary one", w.settle(n, "", "node-1"), "patch node-1")
	w.remove(node)
	same(t, "writes for a node that is ending", w.settle(n, "", "node-1"))
	edit(w, node, func(n *corev1.Node) { n.Finalizers = nil })
	same(t, "writes for a node that is gone", w.settle(n, "", "node-1"), "delete node-1")
	if got := testutil.ToFloat64(w.api.writes.WithLabelValues("nodepodprobes")); got != 4 {
		t.Errorf("%g writes are counted", got)
	}
}

func TestRefusalsAreErrorsAboutWhatWasSent(t *testing.T) {
	t.Parallel()
	pods := corev1.Resource("pods")
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"invalid":     {apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "a", nil), true},
		"forbidden":   {apierrors.NewForbidden(pods, "a", nil), true},
		"bad request": {apierrors.NewBadRequest("x"), true},
		"too large":   {apierrors.NewRequestEntityTooLargeError("x"), true},
		"conflict":    {apierrors.NewConflict(pods, "a", nil), false},
		"not found":   {apierrors.NewNotFound(pods, "a"), false},
		"too busy":    {apierrors.NewTooManyRequests("x", 1), false},
	} {
		if got := refused(tc.err); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A refusal for a pod does not apply to the next pod with its name.
func TestRefusalIsOfOnePod(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), gameMarker("m"), gameMarker("n"), gamePod("a"))
	w.refuse = func(pod *corev1.Pod) error {
		if _, ok := pod.Labels["m"]; ok {
			return apierrors.NewForbidden(corev1.Resource("pods"), pod.Name, fmt.Errorf("label m is the platform's"))
		}
		return nil
	}
	d := newPodDestination(w.api)
	for _, uid := range []string{"uid-a", "another"} {
		status := results("a", v1alpha1.ProbeSucceeded, "m#idle", "n#idle")
		status.UID = uid
		w.report(status)
		w.settle(writing{d}, "shop", "a")
		if event := recorder.Next(w.events); !strings.Contains(event, "label m") {
			t.Errorf("%s: event %q", uid, event)
		}
		if labels := w.podNamed("a").Labels; labels["n"] != "idle" || labels["m"] != "" {
			t.Errorf("%s: labels %v", uid, labels)
		}
		delete(w.records, "a")
		w.remove(gamePod("a"))
		again := gamePod("a")
		again.UID = "another"
		if err := w.Create(t.Context(), again); err != nil {
			t.Fatal(err)
		}
	}
}
