package workload_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// deleted deletes the policy, and lets all act until the policy is gone.
func (w *world) deleted() {
	w.t.Helper()
	w.policy.DeletionTimestamp = &metav1.Time{Time: w.now}
	for range 60 {
		if w.rounds(1); !w.last.Finalizer {
			return
		}
	}
	w.t.Errorf("the policy is not gone: %s", w.progressing())
}

// The owner holds the workload permanently, so only the status of the policy shows that an update is in progress.
func TestPolicyThatIsDeletedInTheMiddleWithHoldPolicyByOwner(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		for policy, want := range map[v1alpha1.UpdateDeletionPolicy]string{v1alpha1.UpdateDeletionFinish: "app:2", v1alpha1.UpdateDeletionUndo: "app:1"} {
			w := newWorld(t, kind, 4)
			w.policy.Spec.HoldPolicy, w.policy.Spec.DeletionPolicy = v1alpha1.HoldByOwner, policy
			w.edit(image("app:2"))
			w.rounds(4)
			if w.images()["app:1"] == 0 || w.images()["app:2"] == 0 {
				t.Fatalf("%s: images %v", kind, w.images())
			}
			if w.deleted(); w.images()[want] != 4 || w.template().Spec.Containers[0].Image != want || w.created > 0 {
				t.Errorf("%s, %s: images %v, template %s, %d pods created", kind, policy, w.images(), w.template().Spec.Containers[0].Image, w.created)
			}
		}
	}
}

func TestPolicyWithHoldPolicyByOwnerIsGoneAtOnceIfNothingIsToBeCompleted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]func(*world){
		"Release": func(w *world) {
			w.policy.Spec.DeletionPolicy = v1alpha1.UpdateDeletionRelease
			w.edit(image("app:2"))
			w.rounds(6)
		},
		"no update":    func(w *world) { w.rounds(1) },
		"not in place": func(w *world) { w.edit(image("app:2")); w.rounds(6); w.edit(moreEnvironment); w.rounds(2) },
		"not in place, Undo": func(w *world) {
			w.policy.Spec.DeletionPolicy = v1alpha1.UpdateDeletionUndo // refit-manager may not write such a template
			w.edit(image("app:2"))
			w.rounds(6)
			w.edit(moreEnvironment)
			w.rounds(2)
		},
		"not held": func(w *world) { w.edit(image("app:2")); w.rounds(6); w.deployment.Spec.Paused = false },
	} {
		w := newWorld(t, "Deployment", 4)
		w.policy.Spec.HoldPolicy = v1alpha1.HoldByOwner
		tc(w)
		w.policy.DeletionTimestamp = &metav1.Time{Time: w.now}
		w.controller()
		if w.look(-1); w.last.Finalizer {
			t.Errorf("%s: the policy is not gone: %s", name, w.progressing())
		}
	}
}

// When the owner has the controller act again, it must not take the template for another one.
func TestTemplateThatIsOnlyWrittenDifferentlyWithHoldPolicyByOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "DaemonSet", 3)
	w.policy.Spec.HoldPolicy = v1alpha1.HoldByOwner
	for _, cpu := range []string{"1", "1000m"} {
		w.edit(cpus(cpu))
		w.rounds(20)
	}
	for name, pod := range w.pods {
		if got := pod.Labels[appsv1.ControllerRevisionHashLabelKey]; got != w.target().Label {
			t.Errorf("%s has revision %s, want %s", name, got, w.target().Label)
		}
	}
}
