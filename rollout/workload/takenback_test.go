package workload_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// All pods have the label of the new revision, and then fail before the end of the update.
func TestTemplateThatFailsLateIsUndone(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"StatefulSet", "DaemonSet"} {
		w := newWorld(t, kind, 3)
		w.policy.Spec.FailurePolicy = v1alpha1.UpdateFailureUndo
		w.edit(image("app:2"))
		labelled := func() bool {
			label := w.target().Label
			for _, pod := range w.pods {
				if pod.Labels["controller-revision-hash"] != label {
					return false
				}
			}
			return true
		}
		for range 60 {
			if w.rounds(1); labelled() {
				break
			}
		}
		if w.progressing() == "True Completed" {
			t.Fatal("the update has ended")
		}
		w.bad["app:2"] = true
		w.rounds(60)
		if w.template().Spec.Containers[0].Image != "app:1" || w.images()["app:1"] != 3 || w.progressing() != "True Completed" {
			t.Errorf("%s: template %s, images %v, %s: %s", kind, w.template().Spec.Containers[0].Image, w.images(), w.progressing(), w.message())
		}
	}
}

// The pods that the partition of the owner excludes have an older template than the others had.
func TestUndoDoesNotGoToTheTemplateOfExcludedPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "StatefulSet", 3)
	*w.statefulSet.Spec.UpdateStrategy.RollingUpdate.Partition = 1
	w.edit(image("app:2"))
	w.rounds(40)
	w.policy.Spec.FailurePolicy = v1alpha1.UpdateFailureUndo
	w.edit(image("app:3"))
	for range 60 {
		w.rounds(1)
		if label := w.target().Label; w.pods["web-1"].Labels["controller-revision-hash"] == label && w.pods["web-2"].Labels["controller-revision-hash"] == label {
			break
		}
	}
	w.bad["app:3"] = true
	w.rounds(60)
	if w.template().Spec.Containers[0].Image != "app:2" || w.images()["app:2"] != 2 {
		t.Errorf("template %s, images %v, %s: %s", w.template().Spec.Containers[0].Image, w.images(), w.progressing(), w.message())
	}
}

// readinessGate adds the condition by which pods are drained.
func readinessGate(t *corev1.PodTemplateSpec) {
	t.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}}
}

func moreEnvironment(t *corev1.PodTemplateSpec) {
	t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
}

// refit-manager ends between the status that says that pods are replaced and the release, and somebody writes the former template.
func TestTemplateThatIsTakenBackBeforeTheReleaseReachesAllPods(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 4)
		w.edit(image("app:2"))
		w.rounds(7)
		if w.images()["app:2"] == 0 {
			t.Fatal("no pod was updated")
		}
		w.edit(moreEnvironment)
		w.controller()
		w.look(0)
		w.edit(func(t *corev1.PodTemplateSpec) { *t = template("app:1") })
		w.rounds(60)
		if w.images()["app:1"] != 4 || w.progressing() != "True Completed" || w.meta().Labels[v1alpha1.LabelHeld] != "" {
			t.Errorf("%s: images %v, %s", kind, w.images(), w.progressing())
		}
	}
}

// What has begun is completed, also if the template is replaced by one that is not carried out.
func TestDrainedPodServesAgainIfTheNextTemplateIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "StatefulSet", 2)
	w.edit(readinessGate)
	w.rounds(10)
	w.policy.Spec.DrainSeconds, w.policy.Spec.PodUpdatePolicy = new(int32(3)), v1alpha1.PodUpdateInPlaceOnly
	w.edit(image("app:2"))
	w.rounds(3)
	if w.unavailable() != 1 {
		t.Fatalf("%d pods are not ready", w.unavailable())
	}
	w.edit(moreEnvironment)
	w.rounds(20)
	if w.unavailable() > 0 || w.progressing() != "False NotInPlace" {
		t.Errorf("%d pods are not ready, %s", w.unavailable(), w.progressing())
	}
}

// The template is taken back while the controller of the workload replaces the pods, some of which had been updated in place before.
func TestTemplateThatIsTakenBackDuringAReplacementReachesAllPods(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		for rounds := 1; rounds < 8; rounds++ {
			w := newWorld(t, kind, 6)
			w.oneAtATime = true
			w.edit(image("app:2"))
			w.rounds(8)
			if w.images()["app:2"] == 0 || w.images()["app:1"] == 0 {
				t.Fatalf("images %v", w.images())
			}
			w.edit(moreEnvironment)
			w.rounds(rounds)
			w.edit(func(t *corev1.PodTemplateSpec) { *t = template("app:1") })
			w.rounds(80)
			if w.images()["app:1"] != 6 || w.progressing() != "True Completed" || w.meta().Labels[v1alpha1.LabelHeld] != "" {
				t.Errorf("%s after %d rounds: images %v, %s", kind, rounds, w.images(), w.progressing())
			}
		}
	}
}
