package control

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kubelet"
)

// upgradable are the statuses of the condition SidecarSetUpgradable, by pod; empty for a pod without it.
func (w *world) upgradable() map[string]corev1.ConditionStatus {
	w.t.Helper()
	statuses := map[string]corev1.ConditionStatus{}
	for _, pod := range w.pods() {
		statuses[pod.Name] = ""
		if c := kubelet.Condition(&pod.Status, v1beta1.ConditionSidecarSetUpgradable); c != nil {
			statuses[pod.Name] = c.Status
		}
	}
	return statuses
}

func debug(s *v1beta1.SidecarSetSpec) {
	s.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
}

// kubectl wait --for=condition=SidecarSetUpgradable returns after an update.
func TestPodsSayThatTheyWereUpdatedInPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.rounds(2)
	if got := w.upgradable(); got["web-0"] != "" || got["web-1"] != "" {
		t.Fatalf("%v before any update", got)
	}
	w.change(image("log:2"))
	w.rounds(6)
	if got := w.upgradable(); got["web-0"] != corev1.ConditionTrue || got["web-1"] != corev1.ConditionTrue || w.images()["log:2"] != 2 {
		t.Errorf("%v, images %v", got, w.images())
	}
}

func TestPodsThatAreNotToBeUpdatedDoNotSayThatTheyCannotBe(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*v1beta1.SidecarSetSpec){
		"paused":      func(s *v1beta1.SidecarSetSpec) { s.UpdateStrategy.Paused = true },
		"not updated": func(s *v1beta1.SidecarSetSpec) { s.UpdateStrategy.Type = v1beta1.SidecarSetNotUpdate },
		"not selected": func(s *v1beta1.SidecarSetSpec) {
			s.UpdateStrategy.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "yes"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.look()
			w.change(func(s *v1beta1.SidecarSetSpec) {
				debug(s)
				change(s)
			})
			w.rounds(3)
			if got := w.upgradable(); got["web-0"] != "" {
				t.Errorf("%v", got)
			}
			w.change(func(s *v1beta1.SidecarSetSpec) { s.UpdateStrategy = v1beta1.SidecarSetUpdateStrategy{} })
			w.rounds(3)
			if got := w.upgradable(); got["web-0"] != corev1.ConditionFalse {
				t.Errorf("%v when it is to be updated", got)
			}
		})
	}
}

// Each write of a pod is an event of this pod, at which the controller looks again. The cache keeps little of a large pod.
func TestConditionOfALargePodIsWrittenOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.look()
	pod := w.pod("web-0")
	pod.Annotations["kruise.io/sidecarset-x"] = strings.Repeat("x", 200<<10)
	w.check(w.Update(t.Context(), pod))
	writes := w.conditions(func(int) error { return nil })
	w.change(debug)
	if w.rounds(10); *writes != 1 {
		t.Errorf("%d writes", *writes)
	}
	if got := w.upgradable(); got["web-0"] != corev1.ConditionFalse {
		t.Errorf("%v", got)
	}
}

func TestConditionThatIsAlwaysRefusedIsTriedLessAndLessOften(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.look()
	writes := w.conditions(func(int) error { return errors.New("denied by a webhook") })
	w.change(debug)
	if w.rounds(60); *writes < 3 || *writes > 8 {
		t.Errorf("%d writes in a minute", *writes)
	}
}
