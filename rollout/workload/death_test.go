package workload_test

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/record"
)

// dies counts a write, and reports whether the process dies before it.
func (w *world) dies() bool {
	w.writes++
	return w.writes == w.dieAt
}

func (w *world) withdraw(pod *corev1.Pod) {
	w.t.Helper()
	recorded, err := record.Read(pod)
	if err != nil {
		w.t.Fatal(err)
	}
	step, err := w.last.Fields.Withdraw(pod, recorded, w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	if d := inplace.Next(pod, recorded, nil, w.now); step == nil && d.Kind == inplace.KindStep {
		step = d.Step
	}
	if step != nil {
		w.patch(pod, step)
	}
}

// Whichever write the process dies before, the next one continues.
func TestUpdateSurvivesADeathBeforeAnyWrite(t *testing.T) {
	t.Parallel()
	step := 1
	if testing.Short() {
		step = 7
	}
	for _, kind := range kinds {
		for name, tt := range map[string]struct {
			run      func(w *world)
			image    string
			restarts int
		}{
			"update": {func(w *world) { w.edit(image("app:2")); w.rounds(40) }, "app:2", 1},
			"update with pulls": {func(w *world) {
				w.pulling()
				w.edit(image("app:2"))
				w.rounds(50)
				if len(w.registry.unpulled) > 0 {
					w.t.Errorf("started without a pull: %v", w.registry.unpulled)
				}
			}, "app:2", 1},
			"undo": {func(w *world) {
				w.policy.Spec.FailurePolicy = v1alpha1.UpdateFailureUndo
				w.bad["app:2"] = true
				w.edit(image("app:2"))
				w.rounds(40)
			}, "app:1", 2},
			"undo of a deleted policy": {func(w *world) {
				w.policy.Spec.DeletionPolicy = v1alpha1.UpdateDeletionUndo
				w.edit(image("app:2"))
				w.rounds(5)
				w.policy.DeletionTimestamp = &metav1.Time{Time: w.now}
				w.rounds(40)
			}, "app:1", 2},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				for dieAt, writes := 0, 1; dieAt <= writes; dieAt += step {
					w := newWorld(t, kind, 3)
					before := w.uids()
					w.dieAt = dieAt
					tt.run(w)
					if dieAt == 0 {
						writes = w.writes
					}
					when := fmt.Sprintf("death before write %d of %d", dieAt, writes)
					if w.images()[tt.image] != 3 || !maps.Equal(before, w.uids()) || w.template().Spec.Containers[0].Image != tt.image {
						t.Errorf("%s: images %v, template %s, %d pods created", when, w.images(), w.template().Spec.Containers[0].Image, w.created)
					}
					if w.progressing() != "True Completed" && w.policy.DeletionTimestamp == nil || w.meta().Labels[v1alpha1.LabelHeld] != "" || w.worst > 1 {
						t.Errorf("%s: %s, labels %v, %d unavailable at a time", when, w.progressing(), w.meta().Labels, w.worst)
					}
					for pod, n := range w.restarts {
						if n > tt.restarts {
							t.Errorf("%s: %s was restarted %d times", when, pod, n)
						}
					}
				}
			})
		}
	}
}

// A template that comes back before the drained pod has been changed leaves no pod out of its Services.
func TestPodThatIsDrainedForATemplateThatIsTakenBackServesAgain(t *testing.T) {
	t.Parallel()
	for _, seconds := range []int32{0, 30} {
		for rounds := 1; rounds <= 4; rounds++ {
			w := newWorld(t, "StatefulSet", 2)
			w.edit(readinessGate)
			w.rounds(10)
			w.policy.Spec.DrainSeconds = &seconds
			w.edit(image("app:2"))
			w.rounds(rounds)
			w.edit(image("app:1"))
			w.rounds(60)
			if w.unavailable() > 0 || w.progressing() != "True Completed" || w.images()["app:1"] != 2 {
				t.Errorf("drain of %d s, taken back after %d rounds: %d pods are not ready, %s, images %v", seconds, rounds, w.unavailable(), w.progressing(), w.images())
			}
		}
	}
}

// While the controller of the Deployment replaces pods, the policy does not say that all have the template.
func TestPolicyIsNotReadyWhilePodsAreReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "Deployment", 4)
	w.edit(func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
	})
	w.deployment.Status.ObservedGeneration = w.deployment.Generation
	w.look(-1) // releases it
	w.deployment.Status.ObservedGeneration = w.deployment.Generation
	*w.replicaSets[0].Spec.Replicas = 2
	w.addReplicaSet("web-new", &w.deployment.Spec.Template, 2, "2").Status.ObservedGeneration = 1
	w.look(-1)
	if w.progressing() != "True Replacing" {
		t.Errorf("%s in the middle of the rollout", w.progressing())
	}
	for _, c := range w.policy.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady && c.Status == metav1.ConditionTrue {
			t.Error("ready in the middle of the rollout")
		}
	}
}

func TestDeletedPolicyCompletesWhatIsPossible(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set     func(*v1alpha1.InPlaceUpdatePolicySpec)
		edit    func(*corev1.PodTemplateSpec)
		created int
	}{
		"partition": {func(s *v1alpha1.InPlaceUpdatePolicySpec) { s.Partition = new(intstr.FromInt32(2)) }, image("app:2"), 0},
		"paused":    {func(s *v1alpha1.InPlaceUpdatePolicySpec) { s.Paused = true }, image("app:2"), 0},
		"step": {func(s *v1alpha1.InPlaceUpdatePolicySpec) {
			s.Steps = []v1alpha1.RolloutStep{{Pods: intstr.FromInt32(1), Pause: &v1alpha1.StepPause{}}}
		}, image("app:2"), 0},
		"not in place": {func(s *v1alpha1.InPlaceUpdatePolicySpec) { s.PodUpdatePolicy = v1alpha1.PodUpdateInPlaceOnly }, func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
		}, 3},
	} {
		for _, kind := range kinds {
			w := newWorld(t, kind, 3)
			tt.set(&w.policy.Spec)
			w.edit(tt.edit)
			w.rounds(10)
			w.policy.DeletionTimestamp = &metav1.Time{Time: w.now}
			w.rounds(40)
			if w.last.Finalizer || w.meta().Labels[v1alpha1.LabelHeld] != "" || w.created != tt.created {
				t.Errorf("%s, %s: finalizer %t, labels %v, %d pods created", kind, name, w.last.Finalizer, w.meta().Labels, w.created)
			}
		}
	}
}
