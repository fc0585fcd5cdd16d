package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/probe/podprobe"
)

// cachedPods is a cache that keeps of pods what they are trimmed to.
type cachedPods struct{ *apiServer }

func (c cachedPods) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, key, object, opts...)
	if pod, ok := object.(*corev1.Pod); ok && err == nil {
		*pod = *trimmed(c.t, pod)
	}
	return err
}

func (c cachedPods) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := c.Client.List(ctx, list, opts...)
	if pods, ok := list.(*corev1.PodList); ok {
		for i := range pods.Items {
			if record, ok := c.records[pods.Items[i].Name]; ok {
				pods.Items[i].ManagedFields = []metav1.ManagedFieldsEntry{record}
			}
			pods.Items[i] = *trimmed(c.t, &pods.Items[i])
		}
	}
	return err
}

// counted counts the pods that are read from the API server, and fails if it is told to.
type counted struct {
	client.Reader
	reads int
	err   error
}

func (c *counted) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	c.reads++
	if c.err != nil {
		return c.err
	}
	return c.Reader.Get(ctx, key, object, opts...)
}

// withCache is an API server that the manager knows by a cache.
func withCache(t *testing.T, objects ...client.Object) (*apiServer, *counted) {
	t.Helper()
	w := newAPIServer(t, objects...)
	live := &counted{Reader: w.Client}
	w.client, w.live = cachedPods{w}, live
	return w, live
}

// talkative has 30 probes, and talk are their results, with the longest messages: the pod is too large for the cache by them.
func talkative() *v1alpha1.PodProbeMarker {
	m := gameMarker("m")
	for i := range 29 {
		p := *m.Spec.Probes[0].DeepCopy()
		p.Name, p.PodConditionType, p.MarkerPolicy = fmt.Sprint("p", i), fmt.Sprint("example.com/p", i), nil
		m.Spec.Probes = append(m.Spec.Probes, p)
	}
	return m
}

func talk(state v1alpha1.ProbeState) v1alpha1.PodProbeStatus {
	var names []string
	for _, p := range talkative().Spec.Probes {
		names = append(names, podprobe.FullName("m", p.Name))
	}
	status := results("a", state, names...)
	for i := range status.ProbeStates {
		status.ProbeStates[i].Message = strings.Repeat("x", result.MaxMessage)
	}
	return status
}

// largePod is too large for the cache by its annotations.
func largePod(name string) *corev1.Pod {
	pod := gamePod(name)
	pod.Annotations = map[string]string{}
	for i := range 1000 {
		pod.Annotations[strings.Repeat("x", 60)+fmt.Sprint(i)] = "x"
	}
	return pod
}

// A game server that is in use would be deleted as idle, and a deleted marker would leave everything behind.
func TestResultsDoNotFreezeAPodThatTheyMakeTooLargeForTheCache(t *testing.T) {
	t.Parallel()
	w, _ := withCache(t, testNode(), talkative(), gamePod("a"))
	n, p, s := &nodeReconciler{api: w.api}, writing{newPodDestination(w.api)}, &markerReconciler{api: w.api}
	same(t, "NodePodProbe", w.settle(n, "", "node-1"), "create node-1")
	w.report(talk(v1alpha1.ProbeSucceeded))
	same(t, "idle", w.settle(p, "shop", "a"), "apply status a")
	carries(w, "a", "idle", 30)
	if kept := trimmed(t, w.podNamed("a")); podprobe.Complete(kept) {
		t.Fatal("the pod is not too large for the cache")
	}
	same(t, "NodePodProbe of the large pod", w.settle(n, "", "node-1"))
	w.report(talk(v1alpha1.ProbeFailed))
	same(t, "in use", w.settle(p, "shop", "a"), "apply status a")
	carries(w, "a", "busy", 30)
	next := writing{newPodDestination(w.api)}
	same(t, "for the next leader", w.settle(next, "shop", "a"))
	if c := statusOf(w, s, "m").Conditions[0]; c.Reason != "Probing" {
		t.Errorf("condition of the marker: %+v", c)
	}
	edit(w, talkative(), func(m *v1alpha1.PodProbeMarker) { m.Finalizers = nil })
	w.remove(talkative())
	same(t, "pods of the deleted marker", namesOf(newPodReconciler(w.api, 1).podsOfMarker(t.Context(), talkative(), nil)), "a")
	same(t, "without the marker", w.settle(next, "shop", "a"), "apply status a")
	carries(w, "a", "", 0)
	same(t, "NodePodProbe without the marker", w.settle(n, "", "node-1"), "patch node-1")
}

func TestOnlyLargePodsWithMarkersAreReadFromTheAPIServer(t *testing.T) {
	t.Parallel()
	other := largePod("other")
	other.Labels["app"] = "web"
	w, live := withCache(t, testNode(), gameMarker("m"), gamePod("small"), other)
	n, d := &nodeReconciler{api: w.api}, newPodDestination(w.api)
	w.settle(n, "", "node-1")
	for _, name := range []string{"small", "other"} {
		w.settle(writing{d}, "shop", name)
	}
	if live.reads > 0 {
		t.Errorf("%d reads", live.reads)
	}
	if err := w.Create(t.Context(), largePod("large")); err != nil {
		t.Fatal(err)
	}
	w.settle(n, "", "node-1")
	same(t, "NodePodProbe", w.probesOfNode(), "large 10.0.0.1 m#idle", "small 10.0.0.1 m#idle")
	if live.reads != 2 { // settle reconciles once more
		t.Errorf("%d reads for the node", live.reads)
	}
	w.report(results("large", v1alpha1.ProbeSucceeded, "m#idle"))
	sent, err := d.Write(t.Context(), client.ObjectKeyFromObject(largePod("large")))
	if err != nil || sent != (result.Requests{Reads: 1, Writes: 1}) || w.podNamed("large").Labels["m"] != "idle" {
		t.Errorf("%+v, %v", sent, err)
	}
}

// The cache keeps so little of such a pod that it does not show most changes.
func TestALargePodIsLookedAtWhateverHasChanged(t *testing.T) {
	t.Parallel()
	before := trimmed(t, largePod("a"))
	before.ResourceVersion = "1"
	after := before.DeepCopy()
	r := newPodReconciler(newAPIServer(t).api, 1)
	same(t, "nothing", namesOf(r.changedPod(t.Context(), before, after)))
	after.ResourceVersion = "2"
	same(t, "something", namesOf(r.changedPod(t.Context(), before, after)), "a")
}

func TestALargePodIsNotDecidedOnWithoutTheAPIServer(t *testing.T) {
	t.Parallel()
	w, live := withCache(t, testNode(), gameMarker("m"), largePod("a"))
	n, d := &nodeReconciler{api: w.api}, newPodDestination(w.api)
	w.settle(n, "", "node-1")
	w.report(results("a", v1alpha1.ProbeSucceeded, "m#idle"))
	live.err = errors.New("down")
	key := client.ObjectKeyFromObject(largePod("a"))
	if _, err := d.Write(t.Context(), key); !errors.Is(err, live.err) {
		t.Errorf("error %v", err)
	}
	if _, _, err := n.spec(t.Context(), "node-1"); !errors.Is(err, live.err) {
		t.Errorf("error of the node: %v", err)
	}
	live.err = nil
	again := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "another"}}
	for name, reader := range map[string]client.Reader{"gone": newAPIServer(t), "another of its name": newAPIServer(t, again)} {
		w.live = reader
		if sent, err := d.Write(t.Context(), key); err != nil || sent.Writes > 0 {
			t.Errorf("%s: %+v, %v", name, sent, err)
		}
	}
}

// What is not known is not reported as a container that is missing, and becomes known with the probes of the node.
func TestMarkerOfALargePodFollowsTheProbesOfItsNode(t *testing.T) {
	t.Parallel()
	w, _ := withCache(t, testNode(), gameMarker("m"), largePod("a"))
	n, s := &nodeReconciler{api: w.api}, &markerReconciler{api: w.api}
	ready := func() string {
		c := statusOf(w, s, "m").Conditions[0]
		return string(c.Status) + " " + c.Reason
	}
	nodeProbes := func() *v1alpha1.NodePodProbe {
		node := &v1alpha1.NodePodProbe{}
		if err := client.IgnoreNotFound(w.Get(t.Context(), client.ObjectKey{Name: "node-1"}, node)); err != nil {
			t.Fatal(err)
		}
		return node
	}
	if got := ready(); got != "Unknown PodTooLarge" || len(w.events.Events) > 0 {
		t.Errorf("before the NodePodProbe: %s, %d Events", got, len(w.events.Events))
	}
	w.settle(n, "", "node-1")
	before := nodeProbes()
	if got := ready(); got != "True Probing" {
		t.Errorf("with it: %s", got)
	}
	edit(w, gameMarker("m"), func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes[0].Name = "free" })
	if got := ready(); got != "Unknown PodTooLarge" {
		t.Errorf("with another probe: %s", got)
	}
	w.settle(n, "", "node-1")
	after := nodeProbes()
	after.Generation++
	same(t, "markers of the changed NodePodProbe", namesOf(s.markersOfNode(t.Context(), before, after)), "m")
	if got := ready(); got != "True Probing" {
		t.Errorf("with it in the NodePodProbe: %s", got)
	}
}
