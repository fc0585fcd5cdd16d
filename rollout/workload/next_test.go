package workload_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

var kinds = []string{"Deployment", "StatefulSet", "DaemonSet"}

func (w *world) uids() map[string]types.UID {
	uids := map[string]types.UID{}
	for name, pod := range w.pods {
		uids[name] = pod.UID
	}
	return uids
}

func TestPodsFollowTheTemplateInPlaceOneAfterAnother(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, kind, 4)
			before := w.uids()
			w.edit(image("app:2"))
			w.rounds(40)
			if diff := cmp.Diff(before, w.uids()); diff != "" || w.created > 0 {
				t.Errorf("pods were replaced: %s", diff)
			}
			if diff := cmp.Diff(map[string]int{"app:2": 4}, w.images()); diff != "" {
				t.Error(diff)
			}
			if w.worst != 1 {
				t.Errorf("%d pods were unavailable at a time", w.worst)
			}
			if w.progressing() != "True Completed" || w.policy.Status.Update != nil || w.meta().Labels[v1alpha1.LabelHeld] != "" {
				t.Errorf("%s, update %v, labels %v", w.progressing(), w.policy.Status.Update, w.meta().Labels)
			}
			for name, n := range w.restarts {
				if n != 1 {
					t.Errorf("%s was restarted %d times", name, n)
				}
			}
		})
	}
}

// A process that dies after any write leaves what another one continues.
func TestUpdateSurvivesTheEndOfTheProcess(t *testing.T) {
	t.Parallel()
	step := 1
	if testing.Short() {
		step = 5
	}
	for _, kind := range kinds {
		for dies := 0; dies < 12; dies += step {
			w := newWorld(t, kind, 3)
			before := w.uids()
			w.edit(image("app:2"))
			w.rounds(dies)
			w.look(dies % 2)
			w.rounds(40)
			if w.progressing() != "True Completed" || w.images()["app:2"] != 3 || !maps.Equal(before, w.uids()) {
				t.Errorf("%s, after %d rounds: %s, images %v", kind, dies, w.progressing(), w.images())
			}
			for name, n := range w.restarts {
				if n != 1 {
					t.Errorf("%s, after %d rounds: %s was restarted %d times", kind, dies, name, n)
				}
			}
		}
	}
}

func TestNewestTemplateWinsAndNothingIsLeftOfTheOneBefore(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 4)
		w.edit(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[1].Image, t.Labels["track"] = "log:2", "canary" })
		w.rounds(7)
		w.edit(func(t *corev1.PodTemplateSpec) {
			*t = template("app:2")
		})
		w.rounds(60)
		for name, pod := range w.pods {
			if pod.Spec.Containers[0].Image != "app:2" || pod.Spec.Containers[1].Image != "log:1" || pod.Labels["track"] != "" {
				t.Errorf("%s: %s has %s, %s, labels %v", kind, name, pod.Spec.Containers[0].Image, pod.Spec.Containers[1].Image, pod.Labels)
			}
		}
		if w.created > 0 || w.progressing() != "True Completed" {
			t.Errorf("%s: %d pods were created, %s", kind, w.created, w.progressing())
		}
	}
}

func TestFailedPodsStopTheUpdate(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 4)
		w.bad["app:2"] = true
		w.edit(image("app:2"))
		w.rounds(40)
		if diff := cmp.Diff(map[string]int{"app:1": 3, "app:2": 1}, w.images()); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
		if w.progressing() != "False PodsFailed" || w.policy.Status.FailedPods != 1 || len(w.policy.Status.Failures) != 1 {
			t.Errorf("%s: %s, %d failed", kind, w.progressing(), w.policy.Status.FailedPods)
		}
		w.edit(image("app:3"))
		w.rounds(60)
		if w.images()["app:3"] != 4 || w.progressing() != "True Completed" {
			t.Errorf("%s: with another image %v, %s", kind, w.images(), w.progressing())
		}
	}
}

func TestFailedTemplateIsUndoneInPlace(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 3)
		w.policy.Spec.FailurePolicy = v1alpha1.UpdateFailureUndo
		before := w.uids()
		w.bad["app:2"] = true
		w.edit(image("app:2"))
		w.rounds(60)
		if w.images()["app:1"] != 3 || w.template().Spec.Containers[0].Image != "app:1" || !maps.Equal(before, w.uids()) {
			t.Errorf("%s: images %v, template %s", kind, w.images(), w.template().Spec.Containers[0].Image)
		}
		w.edit(image("app:2")) // as a GitOps tool does
		w.rounds(10)
		if w.progressing() != "False Undone" || w.images()["app:1"] != 3 {
			t.Errorf("%s: the same template again: %s, images %v", kind, w.progressing(), w.images())
		}
	}
}

func TestChangesThatAreNotPossibleInPlace(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		for policy, want := range map[v1alpha1.PodUpdatePolicy]struct {
			replaced    int
			progressing string
		}{
			v1alpha1.PodUpdateInPlaceIfPossible: {3, "True Completed"},
			v1alpha1.PodUpdateInPlaceOnly:       {0, "False NotInPlace"},
		} {
			w := newWorld(t, kind, 3)
			w.policy.Spec.PodUpdatePolicy = policy
			w.edit(func(t *corev1.PodTemplateSpec) {
				t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
			})
			w.rounds(20)
			if w.created != want.replaced || w.progressing() != want.progressing {
				t.Errorf("%s, %s: %d pods were replaced, %s", kind, policy, w.created, w.progressing())
			}
		}
	}
}

// The write of the former template may fail after the status was written.
func TestUndoIsRepeatedUntilItIsWritten(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 3)
		w.policy.Spec.FailurePolicy = v1alpha1.UpdateFailureUndo
		w.bad["app:2"] = true
		w.edit(image("app:2"))
		for range 40 {
			w.controller()
			w.kubelet()
			if w.look(-1); w.policy.Status.UndoneRevision != "" {
				break
			}
			w.now = w.now.Add(time.Second)
		}
		image("app:2")(w.template()) // as if the write had failed
		w.rounds(40)
		if w.images()["app:1"] != 3 || w.template().Spec.Containers[0].Image != "app:1" {
			t.Errorf("%s: images %v, template %s, %s", kind, w.images(), w.template().Spec.Containers[0].Image, w.progressing())
		}
	}
}
