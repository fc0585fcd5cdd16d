package workload_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/rollout/workload"
)

// A GitOps tool applies its template again as soon as Refit has written the former one.
func TestTemplateThatIsUndoneAndAppliedAgainIsNotWrittenInTurn(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 4)
		w.policy.Spec.FailurePolicy, w.policy.Spec.MaxUnavailable = v1alpha1.UpdateFailureUndo, new(intstr.FromInt32(2))
		before := w.uids()
		w.bad["app:2"] = true
		w.edit(image("app:2"))
		undone := 0
		for range 60 {
			w.rounds(1)
			if w.template().Spec.Containers[0].Image == "app:1" {
				undone++
				w.rounds(1) // the tool is a little later
				w.edit(image("app:2"))
			}
		}
		if undone != 1 || w.template().Spec.Containers[0].Image != "app:2" {
			t.Errorf("%s: the former template was written %d times, template %s", kind, undone, w.template().Spec.Containers[0].Image)
		}
		if w.images()["app:1"] != 4 || w.unavailable() > 0 || !maps.Equal(before, w.uids()) || w.progressing() != "False Undone" || w.policy.Status.Update != nil {
			t.Errorf("%s: images %v, %d not ready, %s, update %v", kind, w.images(), w.unavailable(), w.progressing(), w.policy.Status.Update)
		}
		if w.meta().Labels[v1alpha1.LabelHeld] != "true" {
			t.Errorf("%s: the workload is released with a template that has failed", kind)
		}
		w.edit(image("app:3"))
		w.rounds(60)
		if w.images()["app:3"] != 4 || w.progressing() != "True Completed" || !maps.Equal(before, w.uids()) {
			t.Errorf("%s: with another template images %v, %s", kind, w.images(), w.progressing())
		}
	}
}

// Steps and partition are about pods that get a new template, and not about pods that go back.
func TestPodsGoBackWithoutRegardToStepsAndPartition(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*v1alpha1.InPlaceUpdatePolicySpec){
		"steps": func(s *v1alpha1.InPlaceUpdatePolicySpec) {
			s.Steps = []v1alpha1.RolloutStep{{Pods: intstr.FromInt32(1), Pause: &v1alpha1.StepPause{}}}
		},
		"partition": func(s *v1alpha1.InPlaceUpdatePolicySpec) { s.Partition = new(intstr.FromInt32(3)) },
	} {
		for _, kind := range kinds {
			w := newWorld(t, kind, 4)
			set(&w.policy.Spec)
			w.edit(image("app:2"))
			w.rounds(20)
			if w.images()["app:2"] != 1 {
				t.Fatalf("%s, %s: images %v", name, kind, w.images())
			}
			w.edit(image("app:1"))
			if w.rounds(30); w.images()["app:1"] != 4 || w.progressing() != "True Completed" {
				t.Errorf("%s, %s: images %v, %s", name, kind, w.images(), w.progressing())
			}
		}
	}
}

// A correction is often written while pods still go back from the template before it.
func TestTemplateThatIsWrittenDuringAnUndoIsUndoneToo(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 4)
		w.policy.Spec.FailurePolicy = v1alpha1.UpdateFailureUndo
		w.bad["app:2"], w.bad["app:3"] = true, true
		w.edit(image("app:2"))
		for range 60 {
			if w.rounds(1); w.template().Spec.Containers[0].Image == "app:1" {
				break
			}
		}
		w.rounds(1) // the former template is observed
		if w.policy.Status.Update == nil || w.policy.Status.UndoneRevision == "" {
			t.Fatalf("%s: the undo is not in progress: %s", kind, w.progressing())
		}
		w.edit(image("app:3"))
		w.rounds(120)
		if w.template().Spec.Containers[0].Image != "app:1" || w.images()["app:1"] != 4 || w.unavailable() > 0 {
			t.Errorf("%s: template %s, images %v, %d not ready, %s", kind, w.template().Spec.Containers[0].Image, w.images(), w.unavailable(), w.progressing())
		}
	}
}

// Somebody writes a correction in the moment in which Refit has recorded the undo, and has not written the former template yet.
func TestTemplateThatIsWrittenInsteadOfTheFormerOneIsUndoneToo(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 4)
		w.policy.Spec.FailurePolicy = v1alpha1.UpdateFailureUndo
		w.bad["app:2"], w.bad["app:3"] = true, true
		w.edit(image("app:2"))
		for w.policy.Status.UndoneRevision == "" {
			w.controller()
			w.kubelet()
			w.look(0)
			for _, action := range w.last.Actions {
				if action.Kind != workload.ActionUndo {
					w.act(&action)
				}
			}
			w.now = w.now.Add(time.Second)
		}
		w.edit(image("app:3"))
		w.rounds(120)
		if w.template().Spec.Containers[0].Image != "app:1" || w.images()["app:1"] != 4 || w.unavailable() > 0 || w.policy.Status.Update != nil {
			t.Errorf("%s: template %s, images %v, %d not ready, %s", kind, w.template().Spec.Containers[0].Image, w.images(), w.unavailable(), w.progressing())
		}
	}
}

// A Deployment may have a name of 253 bytes. What is left of it is in the name of the ReplicaSet of the history.
func TestHistoryOfADeploymentWithALongName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "Deployment", 2)
	w.deployment.Name = strings.Repeat("a", 229) + ".team.example.com"
	w.edit(image("app:2"))
	w.rounds(40)
	kept := w.replicaSets[len(w.replicaSets)-1]
	if wrong := validation.IsDNS1123Subdomain(kept.Name); len(w.replicaSets) != 2 || len(wrong) > 0 {
		t.Errorf("%d ReplicaSets, the name of the last is wrong: %v", len(w.replicaSets), wrong)
	}
}
