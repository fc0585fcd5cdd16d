package workload_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// A pod that is left as it is can be deleted, for example with its node. Until its workload has created it again, the update has not
// ended: the workload would be released, and create the pod with the new template.
func TestPodThatIsLeftAsItIsMayBeMissing(t *testing.T) {
	t.Parallel()
	one := intstr.FromInt32(1)
	for name, set := range map[string]func(*v1alpha1.InPlaceUpdatePolicySpec){
		"partition": func(s *v1alpha1.InPlaceUpdatePolicySpec) { s.Partition = &one },
		"step": func(s *v1alpha1.InPlaceUpdatePolicySpec) {
			s.Steps = []v1alpha1.RolloutStep{{Pods: one, Pause: &v1alpha1.StepPause{}}}
		},
	} {
		for _, kind := range kinds {
			w := newWorld(t, kind, 2)
			set(&w.policy.Spec)
			w.edit(image("app:2"))
			w.rounds(20)
			for pod, is := range w.pods {
				if is.Spec.Containers[0].Image == "app:1" {
					delete(w.pods, pod)
				}
			}
			w.look(-1)
			if len(w.pods) != 1 || len(w.last.Actions) > 0 || w.meta().Labels[v1alpha1.LabelHeld] == "" || w.progressing() == "True Completed" {
				t.Errorf("%s, %s: actions %v, labels %v, %s", kind, name, w.last.Actions, w.meta().Labels, w.progressing())
			}
		}
	}
}

// Pods that cannot be created with the former template, for example because of a quota, get the new one.
func TestMissingPodsDoNotStopTheEndOfAnUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "Deployment", 3)
	w.edit(image("app:2"))
	w.rounds(3)
	for pod, is := range w.pods {
		if is.Spec.Containers[0].Image == "app:1" {
			delete(w.pods, pod)
			break
		}
	}
	for range 20 {
		w.kubelet()
		w.look(-1)
		w.now = w.now.Add(time.Second)
		for _, r := range w.replicaSets {
			r.Status.ObservedGeneration = r.Generation
		}
	}
	if len(w.pods) != 2 || w.images()["app:2"] != 2 || w.meta().Labels[v1alpha1.LabelHeld] != "" {
		t.Errorf("images %v, labels %v, %s", w.images(), w.meta().Labels, w.progressing())
	}
}

// Its node is down, it has a finalizer, or its grace period is long. Its workload has replaced it.
func TestPodThatStaysTerminatingDoesNotStopTheEndOfAnUpdate(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 3)
		for _, pod := range w.pods {
			old := pod.DeepCopy()
			old.Name, old.UID, old.OwnerReferences[0].UID = "old", "old", "a-former-owner" // the controllers of the test ignore it
			old.DeletionTimestamp = &metav1.Time{Time: w.now.Add(-time.Hour)}
			w.pods["old"] = old
			break
		}
		w.edit(image("app:2"))
		w.rounds(40)
		if w.images()["app:2"] != 3 || w.created > 0 || w.progressing() != "True Completed" || w.meta().Labels[v1alpha1.LabelHeld] != "" {
			t.Errorf("%s: images %v, %d pods created, %s, labels %v", kind, w.images(), w.created, w.progressing(), w.meta().Labels)
		}
	}
}

// Kubernetes wants progressDeadlineSeconds to be more than minReadySeconds, the default of the policy need not be.
func TestPodThatIsReadyButNotForLongEnoughHasNotFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "Deployment", 1)
	w.deployment.Spec.MinReadySeconds = 900
	w.policy.Spec.FailurePolicy = v1alpha1.UpdateFailureUndo
	w.edit(image("app:2"))
	w.rounds(10)
	w.now = w.now.Add(12 * time.Minute)
	w.rounds(10)
	if w.images()["app:2"] != 1 || w.policy.Status.FailedPods > 0 {
		t.Errorf("images %v, %s, failures %v", w.images(), w.progressing(), w.policy.Status.Failures)
	}
	w.now = w.now.Add(4 * time.Minute)
	w.rounds(20)
	if w.progressing() != "True Completed" {
		t.Errorf("%s at the end", w.progressing())
	}
}
