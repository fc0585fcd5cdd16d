package workload_test

import (
	"strings"
	"testing"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// The controller of the workload would replace all pods.
func TestPausedPolicyHoldsAChangeThatIsNotPossibleInPlace(t *testing.T) {
	t.Parallel()
	for _, hold := range []v1alpha1.HoldPolicy{v1alpha1.HoldWhileUpdating, v1alpha1.HoldByOwner} {
		for _, kind := range kinds {
			if kind == "Deployment" && hold == v1alpha1.HoldByOwner {
				continue // its owner has to resume it, whatever the policy says
			}
			w := newWorld(t, kind, 3)
			w.policy.Spec.HoldPolicy, w.policy.Spec.Paused = hold, true
			w.edit(moreEnvironment)
			before := w.meta().Labels[v1alpha1.LabelHeld]
			if w.rounds(20); w.created > 0 || w.progressing() != "Unknown Paused" || w.meta().Labels[v1alpha1.LabelHeld] != before {
				t.Errorf("%s, %s: %d pods were replaced, %s, labels %v", kind, hold, w.created, w.progressing(), w.meta().Labels)
			}
			if !strings.HasPrefix(w.message(), "spec.paused is set: not possible in place: ") {
				t.Errorf("%s, %s: message %q", kind, hold, w.message())
			}
			w.policy.Spec.Paused = false
			if w.rounds(40); w.created != 3 || w.progressing() != "True Completed" || w.meta().Labels[v1alpha1.LabelHeld] != "" {
				t.Errorf("%s, %s, resumed: %d pods were replaced, %s, labels %v", kind, hold, w.created, w.progressing(), w.meta().Labels)
			}
		}
	}
}

// A workload that is released belongs to its controller.
func TestPauseAfterTheReleaseStopsNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 3)
		w.oneAtATime = true
		w.edit(moreEnvironment)
		if w.rounds(2); w.created == 0 || w.created == 3 {
			t.Fatalf("%s: %d pods were replaced", kind, w.created)
		}
		w.policy.Spec.Paused = true
		if w.rounds(20); w.created != 3 || w.progressing() != "True Completed" {
			t.Errorf("%s: %d pods were replaced, %s", kind, w.created, w.progressing())
		}
	}
}

func TestPausedPolicyHoldsADeploymentInTheMiddleOfItsOwnRollout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "Deployment", 3)
	w.policy.Spec.Paused = true
	w.edit(image("app:2"))
	w.addReplicaSet("web-new", w.template(), 1, "2")
	if w.rounds(5); w.images()["app:2"] != 1 || w.progressing() != "Unknown Paused" || !w.deployment.Spec.Paused {
		t.Errorf("images %v, %s, held %t", w.images(), w.progressing(), w.deployment.Spec.Paused)
	}
	w.policy.Spec.Paused = false
	if w.rounds(20); w.images()["app:2"] != 3 || w.images()["app:1"] > 0 || w.progressing() != "True Completed" {
		t.Errorf("resumed: images %v, %s", w.images(), w.progressing())
	}
}

// What has begun is completed.
func TestDrainedPodServesAgainWhileTheNextTemplateIsPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "StatefulSet", 2)
	w.edit(readinessGate)
	w.rounds(10)
	w.policy.Spec.DrainSeconds = new(int32(3))
	w.edit(image("app:2"))
	if w.rounds(3); w.unavailable() != 1 {
		t.Fatalf("%d pods are not ready", w.unavailable())
	}
	w.created, w.policy.Spec.Paused = 0, true
	w.edit(moreEnvironment)
	if w.rounds(20); w.unavailable() > 0 || w.created > 0 || w.progressing() != "Unknown Paused" {
		t.Errorf("%d pods are not ready, %d were replaced, %s", w.unavailable(), w.created, w.progressing())
	}
}
