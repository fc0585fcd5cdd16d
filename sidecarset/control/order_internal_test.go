package control

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// The status names one pod as an example: the first by name, as long as it has failed, so that it is not written again and again.
func TestExampleIsTheFirstOfThePodsThatFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5)
	w.look()
	w.change(func(s *v1beta1.SidecarSetSpec) {
		image("bad")(s)
		s.UpdateStrategy.MaxUnavailable = maxUnavailable(5)
	})
	w.rounds(3)
	says := func(want string) {
		t.Helper()
		w.now = w.now.Add(time.Minute)
		w.reconcile()
		for _, c := range w.set().Status.Conditions {
			if c.Type == v1beta1.ConditionDegraded && !strings.HasPrefix(c.Message, want) {
				t.Errorf("message %q, want %q", c.Message, want)
			}
		}
	}
	says("5 pods have failed, as shop/web-0: ")
	gone := w.pod("web-0")
	w.check(w.Delete(t.Context(), gone))
	w.deleted(gone)
	says("4 pods have failed, as shop/web-1: ")
	runs := w.pod("web-1")
	good := runs.DeepCopy()
	good.Spec.Containers[1].Image = "log:1"
	w.run(good)
	runs.Status = good.Status
	w.updated(runs)
	says("3 pods have failed, as shop/web-2: ")
}

// The order of a rollout follows what the pods are.
func TestPodsThatDoNotServeAreUpdatedFirst(t *testing.T) {
	t.Parallel()
	first := func(change func(*corev1.Pod)) string {
		w := newWorld(t, 4)
		pod := w.pod("web-2")
		change(pod)
		// The fake API server has subresources: what is changed of the spec and of the status is shown as an event instead.
		w.look()
		w.change(func(s *v1beta1.SidecarSetSpec) {
			image("log:2")(s)
			s.UpdateStrategy.Paused, s.UpdateStrategy.MaxUnavailable = true, maxUnavailable(4)
		})
		w.reconcile()
		w.updated(pod)
		s := w.r.find("logs")
		s.strategy.Paused = false
		if selection := s.choose(&rollout.Beside{}, w.now); len(selection.Pods) > 0 {
			return selection.Pods[0].Name
		}
		return ""
	}
	if usual := first(func(*corev1.Pod) {}); usual == "web-2" {
		t.Fatal("web-2 is the first anyway: take another one for this test")
	}
	for name, change := range map[string]func(*corev1.Pod){
		"not scheduled": func(p *corev1.Pod) { p.Spec.NodeName = "" },
		"not running":   func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending },
		"not ready":     func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse },
		"ready since later": func(p *corev1.Pod) {
			p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Now().Add(time.Hour))
		},
		"often restarted": func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 7 },
		"younger":         func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Hour)) },
	} {
		if got := first(change); got != "web-2" {
			t.Errorf("%s: %s is the first", name, got)
		}
	}
}
