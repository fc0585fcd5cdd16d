package workload_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// growing returns a Deployment of 3 pods that gets two more, on nodes of their own, while its update pauses after one pod. It pauses
// for so long that the jobs of the first pulls are gone.
func growing(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, "Deployment", 3)
	w.pulling()
	w.policy.Spec.MaxUnavailable = new(intstr.FromString("100%"))
	w.policy.Spec.Steps = []v1alpha1.RolloutStep{{Pods: intstr.FromInt32(1), Pause: &v1alpha1.StepPause{}}}
	w.edit(image("app:2"))
	w.rounds(20)
	w.deployment.Spec.Replicas = new(int32(5))
	w.rounds(2)
	for _, pod := range w.pods {
		w.registry.daemons[pod.Spec.NodeName] = true
	}
	w.rounds(400)
	if w.images()["app:2"] != 1 || w.unavailable() > 0 || len(w.registry.jobs) > 0 {
		t.Fatalf("images %v, %d not ready, %d jobs while the update pauses", w.images(), w.unavailable(), len(w.registry.jobs))
	}
	w.registry.unpulled = nil
	return w
}

func (w *world) promote() {
	w.policy.Spec.Promoted = &v1alpha1.StepReference{Revision: w.policy.Status.UpdateRevision, Step: 0}
}

// completes fails the test unless the update completes, and pods without a pull before are started so often.
func (w *world) completes(unpulled int) {
	w.t.Helper()
	w.rounds(60)
	if w.progressing() != "True Completed" || w.images()["app:2"] != 5 || len(w.registry.unpulled) != unpulled {
		w.t.Errorf("%s, images %v, started without a pull %v", w.progressing(), w.images(), w.registry.unpulled)
	}
}

func TestImagesArePulledForPodsThatAreCreatedDuringAnUpdate(t *testing.T) {
	t.Parallel()
	w := growing(t)
	w.registry.stuck = true
	w.promote()
	w.rounds(20)
	if w.images()["app:2"] != 3 || w.unavailable() > 0 || w.progressing() != "True PullingImages" || w.message() != "0 of 2 nodes have app:2" {
		t.Errorf("images %v, %s: %s", w.images(), w.progressing(), w.message())
	}
	if len(w.registry.jobs) != 1 || len(w.registry.jobs[0].Spec.Selector.Names) != 2 {
		t.Fatalf("%d jobs", len(w.registry.jobs))
	}
	w.registry.stuck = false
	w.completes(0)
	if len(w.registry.jobs) != 1 {
		t.Errorf("%d jobs", len(w.registry.jobs))
	}
}

// One more node comes while the first pull is not finished.
func TestEachNodeOfALaterPodPullsOnce(t *testing.T) {
	t.Parallel()
	w := growing(t)
	w.registry.stuck = true
	w.promote()
	w.rounds(3)
	w.policy.Spec.Paused = true // the pod becomes ready with the former template
	w.deployment.Spec.Replicas = new(int32(6))
	w.rounds(5)
	for _, pod := range w.pods {
		w.registry.daemons[pod.Spec.NodeName] = true
	}
	w.policy.Spec.Paused = false
	w.rounds(10)
	var nodes []string
	for _, job := range w.registry.jobs {
		nodes = append(nodes, job.Spec.Selector.Names...)
	}
	slices.Sort(nodes)
	if len(w.registry.jobs) != 2 || len(slices.Compact(nodes)) != 3 || !strings.Contains(w.message(), "0 of 1 nodes have app:2") {
		t.Errorf("%d jobs on %v: %s", len(w.registry.jobs), nodes, w.message())
	}
	w.registry.unpulled, w.registry.stuck = nil, false
	w.rounds(60)
	if w.progressing() != "True Completed" || w.images()["app:2"] != 6 || len(w.registry.unpulled) > 0 {
		t.Errorf("%s, images %v, started without a pull %v", w.progressing(), w.images(), w.registry.unpulled)
	}
}

func TestAnImageThatALaterNodeCannotPullStopsNoContainerThere(t *testing.T) {
	t.Parallel()
	w := growing(t)
	w.registry.fails["app:2"] = missing
	w.promote()
	w.rounds(20)
	if w.images()["app:2"] != 3 || w.unavailable() > 0 || w.progressing() != "False ImagePullFailed" || !strings.Contains(w.message(), missing) {
		t.Errorf("images %v, %s: %s", w.images(), w.progressing(), w.message())
	}
	w.registry.stuck = true // the pull is tried again
	w.rounds(310)
	if w.progressing() != "False ImagePullFailed" || len(w.registry.jobs) != 1 || w.images()["app:2"] != 3 {
		t.Errorf("%s while the pull is tried again, %d jobs, images %v", w.progressing(), len(w.registry.jobs), w.images())
	}
	w.registry.stuck = false
	delete(w.registry.fails, "app:2")
	w.completes(0)

	w = growing(t)
	w.policy.Spec.FailurePolicy = v1alpha1.UpdateFailureUndo
	w.registry.fails["app:2"] = missing
	w.promote()
	w.rounds(60)
	if w.images()["app:1"] != 5 || w.template().Spec.Containers[0].Image != "app:1" || w.unavailable() > 0 {
		t.Errorf("with Undo: images %v, template %s", w.images(), w.template().Spec.Containers[0].Image)
	}
}

func TestLaterPodsAreUpdatedWhereNothingCanBePulledBefore(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set      func(w *world)
		unpulled int
		said     string
	}{
		"no daemon": {func(w *world) { clear(w.registry.daemons) }, 2, "2 of 2 nodes have no daemon"},
		"continue": {func(w *world) {
			w.policy.Spec.FailurePolicy, w.registry.fails["app:2"] = v1alpha1.UpdateFailureContinue, missing
		}, 2, missing},
		"other credentials": {func(w *world) { w.registry.fails["app:2"] = "unauthorized" }, 2, "unauthorized"},
		"no manager for it": {func(w *world) { w.registry.on = false }, 0, "off"},
		"not asked for":     {func(w *world) { w.policy.Spec.PrePullPolicy = v1alpha1.PrePullNever }, 2, ""},
	} {
		w := growing(t)
		tt.set(w)
		w.promote()
		said := ""
		for range 20 {
			if w.rounds(1); w.last.NotPulled != "" {
				said = w.last.NotPulled
			}
		}
		if !strings.Contains(said, tt.said) || (said == "") != (tt.said == "") {
			t.Errorf("%s: said %q", name, said)
		}
		w.completes(tt.unpulled)
	}
}

// The image was pulled there before the update, or a pod runs it.
func TestLaterPodsOnNodesOfOthersPullNothing(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"with the former template": "app:1", "with the new template": "app:2"} {
		w := growing(t)
		began := w.policy.Status.Update.StartTime
		node := ""
		for _, pod := range w.pods {
			if pod.CreationTimestamp.Before(&began) && pod.Spec.Containers[0].Image == want {
				node = pod.Spec.NodeName
			}
		}
		for _, pod := range w.pods {
			if !pod.CreationTimestamp.Before(&began) {
				pod.Spec.NodeName = node
			}
		}
		w.promote()
		w.completes(0)
		if len(w.registry.jobs) != 0 {
			t.Errorf("%s: %d jobs, on %v", name, len(w.registry.jobs), w.registry.jobs[0].Spec.Selector.Names)
		}
	}
}
