package control

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/refit-project/refit/api/v1beta1"
)

// created, updated and deleted show a watch event to the controller, and report whether it wants to reconcile.
func (w *world) created(pod *corev1.Pod) bool {
	q := &enqueued{}
	w.r.podEvents().Create(w.t.Context(), event.CreateEvent{Object: pod.DeepCopy()}, q)
	return q.any
}

func (w *world) updated(pod *corev1.Pod) bool {
	q := &enqueued{}
	w.r.podEvents().Update(w.t.Context(), event.UpdateEvent{ObjectOld: pod, ObjectNew: pod.DeepCopy()}, q)
	return q.any
}

func (w *world) deleted(pod *corev1.Pod) bool {
	q := &enqueued{}
	w.r.podEvents().Delete(w.t.Context(), event.DeleteEvent{Object: pod}, q)
	return q.any
}

func (w *world) pod(name string) *corev1.Pod {
	w.t.Helper()
	var pod corev1.Pod
	w.check(w.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, &pod))
	return &pod
}

// said takes the Events since the last call.
func (w *world) said() (events []string) {
	for len(w.events) > 0 {
		events = append(events, <-w.events)
	}
	return events
}

func TestOnlyAChangeThatCountsMakesTheControllerLook(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.look()
	pod := w.pod("web-0")
	expect := func(what string, got, want bool) {
		t.Helper()
		if got != want {
			t.Errorf("%s: looks %t", what, got)
		}
	}
	status := func(matched, ready int32) {
		t.Helper()
		w.now = w.now.Add(time.Minute) // counters alone are not written at once
		w.reconcile()
		if s := w.set().Status; s.MatchedPods != matched || s.ReadyPods != ready {
			t.Errorf("%d pods match, %d are ready; want %d and %d", s.MatchedPods, s.ReadyPods, matched, ready)
		}
	}
	expect("a pod that is known", w.created(pod), false)
	expect("a pod that is as before", w.updated(pod), false)
	stranger := pod.DeepCopy()
	stranger.Name, stranger.Labels, stranger.Annotations = "other", nil, nil
	expect("a pod that is not selected", w.created(stranger), false)
	unready := pod.DeepCopy()
	unready.Status.Conditions[0].Status = corev1.ConditionFalse
	expect("not ready", w.updated(unready), true)
	status(2, 1)
	expect("ready again", w.updated(pod), true)
	status(2, 2)
	unselected := pod.DeepCopy()
	unselected.Labels = nil
	expect("not selected any more", w.updated(unselected), true)
	status(1, 1)
	expect("still not selected", w.updated(unselected), false)
	expect("selected again", w.updated(pod), true)
	status(2, 2)
	unselected.Annotations = nil
	expect("neither selected nor annotated any more", w.updated(unselected), true)
	status(1, 1)
	expect("as before", w.updated(pod), true)
	status(2, 2)
	expect("without its annotations", w.updated(func() *corev1.Pod { p := pod.DeepCopy(); p.Annotations = nil; return p }()), true)
	status(1, 1)
	expect("with them again", w.updated(pod), true)
	if status(2, 2); w.set().Status.NotInjectedPods != 0 {
		t.Errorf("%d pods are not injected", w.set().Status.NotInjectedPods)
	}
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		over := pod.DeepCopy()
		over.Status.Phase = phase
		expect(string(phase), w.updated(over), true)
		status(1, 1)
		expect("started again", w.updated(pod), true)
	}
	ending := pod.DeepCopy()
	ending.DeletionTimestamp = new(metav1.Now())
	expect("being deleted", w.updated(ending), true)
	status(1, 1)
	expect("as before that", w.updated(pod), true)
	another := pod.DeepCopy()
	another.UID = "another"
	expect("another of its name is deleted", w.deleted(another), false)
	status(2, 2)
	expect("deleted", w.deleted(pod), true)
	status(1, 1)
	expect("deleted, told twice", w.deleted(pod), false)
}

func TestPodThatIsNotInjectedMakesTheControllerLookOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.look()
	w.miss("missed")
	pod := w.pod("missed")
	steps := []struct {
		what string
		tell func(*corev1.Pod) bool
		pod  func(*corev1.Pod)
		want bool
	}{
		{"created", w.created, func(*corev1.Pod) {}, true},
		{"as before", w.updated, func(*corev1.Pod) {}, false},
		{"not ready", w.updated, func(p *corev1.Pod) { p.Status.Conditions = nil }, true},
		{"deleted", w.deleted, func(*corev1.Pod) {}, true},
		{"deleted, told twice", w.deleted, func(*corev1.Pod) {}, false},
		{"created again", w.created, func(*corev1.Pod) {}, true},
		{"over", w.updated, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, true},
		{"still over", w.updated, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, false},
		{"as in the beginning", w.updated, func(*corev1.Pod) {}, true},
		{"not selected any more", w.updated, func(p *corev1.Pod) { p.Labels = nil }, true},
	}
	for _, step := range steps {
		shown := pod.DeepCopy()
		step.pod(shown)
		if got := step.tell(shown); got != step.want {
			t.Errorf("%s: looks %t", step.what, got)
		}
	}
	w.now = w.now.Add(time.Minute)
	if w.reconcile(); w.set().Status.NotInjectedPods != 0 {
		t.Errorf("%d pods are not injected", w.set().Status.NotInjectedPods)
	}
}

// The webhook is not called for these namespaces, and a canary injects in the place of its base.
func TestPodsThatAreNotToBeInjectedAreNotMissed(t *testing.T) {
	t.Parallel()
	canary := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "canary", UID: "canary", Generation: 1, Annotations: map[string]string{
		v1beta1.AnnotationSidecarSetCanary: "true", v1beta1.AnnotationSidecarSetBase: "logs",
	}}}
	canary.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "canary"}}
	for name, tt := range map[string]struct {
		change  func(w *world, pod *corev1.Pod)
		message string // of the condition; empty: it is not counted
	}{
		"one of a user":          {func(*world, *corev1.Pod) {}, "refit-manager could not be reached"},
		"kube-system":            {func(_ *world, p *corev1.Pod) { p.Namespace = "kube-system" }, "injection is disabled"},
		"the namespace of Refit": {func(_ *world, p *corev1.Pod) { p.Namespace = "refit-system" }, "injection is disabled"},
		"a namespace without Refit": {func(w *world, _ *corev1.Pod) {
			w.label(map[string]string{"sidecarset.refit.dev/injection": "disabled"})
		}, "injection is disabled"},
		"another label": {func(w *world, _ *corev1.Pod) { w.label(map[string]string{"sidecarset.refit.dev/injection": "enabled"}) }, "refit-manager could not be reached"},
		"injected by another one": {func(_ *world, p *corev1.Pod) {
			p.Annotations = map[string]string{v1beta1.AnnotationSidecarSetList: "other"}
		}, "refit-manager could not be reached"},
		"injected by a canary": {func(w *world, p *corev1.Pod) {
			w.check(w.Create(w.t.Context(), canary.DeepCopy()))
			_, err := w.r.Reconcile(w.t.Context(), request("canary"))
			w.check(err)
			p.Annotations = map[string]string{v1beta1.AnnotationSidecarSetList: "canary"}
		}, ""},
		"injected by a canary that was not reconciled yet": {func(w *world, p *corev1.Pod) {
			w.check(w.Create(w.t.Context(), canary.DeepCopy()))
			p.Annotations = map[string]string{v1beta1.AnnotationSidecarSetList: "canary"}
		}, ""},
	} {
		w := newWorld(t, 1)
		w.look()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "missed", UID: "missed", Labels: map[string]string{"app": "web"}}}
		pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}}
		tt.change(w, pod)
		looks := w.created(pod)
		w.reconcile()
		message := ""
		for _, c := range w.set().Status.Conditions {
			if c.Type == v1beta1.ConditionDegraded && c.Status == metav1.ConditionTrue {
				message = c.Message
			}
		}
		if looks != (tt.message != "") || !strings.Contains(message, tt.message) || tt.message == "" && message != "" {
			t.Errorf("%s: looks %t, %q, want %q", name, looks, message, tt.message)
		}
	}
}

func TestMetricsOfASidecarSetEndWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.miss("missed")
	w.look()
	value := func(state string) float64 {
		return testutil.ToFloat64(w.r.reporter.Pods.WithLabelValues("logs", state))
	}
	if value("matched") != 3 || value("ready") != 3 || value("not_injected") != 1 || value("failed") != 0 {
		t.Errorf("%g matched, %g ready, %g not injected, %g failed", value("matched"), value("ready"), value("not_injected"), value("failed"))
	}
	if n := testutil.ToFloat64(w.r.writes.WithLabelValues("sidecarsets")); n != 1 {
		t.Errorf("%g writes of the status", n)
	}
	set := w.set()
	set.Finalizers = []string{"example.org/keep"}
	w.check(w.Update(t.Context(), set))
	w.check(w.Delete(t.Context(), set))
	if again := w.reconcile(); again != 0 || w.r.find("logs") != nil || testutil.CollectAndCount(w.r.reporter.Pods) != 0 {
		t.Errorf("looks again in %s, %d metrics", again, testutil.CollectAndCount(w.r.reporter.Pods))
	}
	if w.created(w.pod("web-0")) {
		t.Error("a SidecarSet that is being deleted is looked at")
	}
}

func TestEventsSayHowARolloutGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.look()
	w.change(image("bad"))
	w.rounds(4)
	w.change(image("log:1"))
	w.rounds(4)
	var kinds []string
	for _, text := range w.said() {
		kinds = append(kinds, strings.Join(strings.Fields(text)[:2], " "))
	}
	want := []string{"Normal Completed", "Normal Updating", "Warning UpdateFailed", "Normal Completed"}
	if !slices.Equal(kinds, want) {
		t.Errorf("Events %q, want %q", kinds, want)
	}
}

// request asks for one SidecarSet.
func request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}
}
