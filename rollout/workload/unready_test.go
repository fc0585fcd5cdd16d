package workload_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// A step can pause for hours: then the pod serves when its turn comes.
func TestImagesArePulledForAPodThatIsNotReadyWhenTheUpdateBegins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "StatefulSet", 3)
	w.pulling()
	w.policy.Spec.Steps = []v1alpha1.RolloutStep{{Pods: intstr.FromInt32(1), Pause: &v1alpha1.StepPause{}}}
	w.slow["web-1"], w.registry.stuck = true, true
	w.rounds(1)
	w.edit(image("app:2"))
	w.rounds(3)
	clear(w.slow)
	w.rounds(3)
	w.registry.stuck = false
	w.rounds(20)
	if w.images()["app:2"] != 1 || w.pods["web-1"].Spec.Containers[0].Image != "app:1" {
		t.Fatalf("images %v, %s", w.images(), w.progressing())
	}
	w.promote()
	w.rounds(40)
	if w.progressing() != "True Completed" || w.images()["app:2"] != 3 || len(w.registry.unpulled) > 0 {
		t.Errorf("%s, images %v, started without a pull %v", w.progressing(), w.images(), w.registry.unpulled)
	}
}

// The image exists, and one node cannot pull it.
func TestANodeThatCannotPullStopsAnUpdateOnlyIfItsPodIsReady(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		slow []string
		want string
	}{
		"ready":           {nil, "False ImagePullFailed"},
		"not ready":       {[]string{"web-1"}, "True Completed"},
		"no pod is ready": {[]string{"web-0", "web-1", "web-2"}, "False ImagePullFailed"},
	} {
		w := newWorld(t, "StatefulSet", 3)
		w.pulling()
		w.registry.full = map[string]bool{"node-web-1": true}
		for _, pod := range tt.slow {
			w.slow[pod] = true
		}
		w.rounds(1)
		w.edit(image("app:2"))
		said := ""
		for i := range 60 {
			if w.rounds(1); w.last.NotPulled != "" {
				said = w.last.NotPulled
			}
			if i == 10 && tt.want == "True Completed" {
				clear(w.slow)
			}
		}
		if w.progressing() != tt.want || (said == "") != (tt.want != "True Completed") {
			t.Errorf("%s: %s: %s, said %q", name, w.progressing(), w.message(), said)
		}
	}
}

// young calls a function for each pod that was created during the update.
func (w *world) young(do func(pod *corev1.Pod)) {
	began := w.policy.Status.Update.StartTime
	for _, pod := range w.pods {
		if !pod.CreationTimestamp.Before(&began) {
			do(pod)
		}
	}
}

// It may be ready, and serve, when the container is stopped.
func TestImagesArePulledForALaterPodThatIsNotReadyYet(t *testing.T) {
	t.Parallel()
	for name, ready := range map[string]bool{"ready meanwhile": true, "not ready": false} {
		w := growing(t)
		w.young(func(pod *corev1.Pod) { w.slow[pod.Name] = true })
		w.registry.stuck = true
		w.rounds(1)
		w.promote()
		w.rounds(5)
		if len(w.registry.jobs) != 1 || len(w.registry.jobs[0].Spec.Selector.Names) != 2 || w.images()["app:2"] != 3 {
			t.Fatalf("%s: %d jobs, images %v", name, len(w.registry.jobs), w.images())
		}
		w.registry.stuck = false
		if ready {
			clear(w.slow)
		}
		w.rounds(10)
		clear(w.slow)
		w.completes(0)
	}
}

func TestALaterPodThatIsNotReadyStopsNothingWhereItsImageCannotBePulled(t *testing.T) {
	t.Parallel()
	w := growing(t)
	w.young(func(pod *corev1.Pod) { w.slow[pod.Name] = true })
	w.registry.fails["app:2"] = missing
	w.rounds(1)
	w.promote()
	said := ""
	for range 10 {
		if w.rounds(1); w.last.NotPulled != "" {
			said = w.last.NotPulled
		}
	}
	if !strings.Contains(said, missing) {
		t.Errorf("said %q", said)
	}
	clear(w.slow)
	w.completes(2)
}

func TestALaterPodThatCannotBecomeReadyWaitsForNoPull(t *testing.T) {
	t.Parallel()
	w := growing(t)
	w.bad["broken"] = true
	w.young(func(pod *corev1.Pod) { pod.Spec.Containers[1].Image = "broken" })
	w.registry.stuck = true
	w.rounds(3)
	w.promote()
	w.rounds(3)
	if w.images()["app:2"] != 5 || len(w.registry.jobs) > 0 {
		t.Errorf("images %v, %d jobs, %s", w.images(), len(w.registry.jobs), w.progressing())
	}
}
