package workload_test

import (
	"encoding/json"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/rollout/workload"
)

func debug(t *corev1.PodTemplateSpec) {
	t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
}

func TestPodsWithoutARefusedTemplateDoNotCountAsUpdated(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 3)
		w.policy.Spec.PodUpdatePolicy = v1alpha1.PodUpdateInPlaceOnly
		w.edit(debug)
		w.rounds(5)
		if got := w.policy.Status; got.UpdatedPods != 0 || got.MatchedPods != 3 || w.progressing() != "False NotInPlace" {
			t.Errorf("%s: %d of %d pods are updated, %s", kind, got.UpdatedPods, got.MatchedPods, w.progressing())
		}
	}
}

// The owner of an OnDelete workload leaves it to Refit to replace pods; the pace of the policy applies.
func TestPodsThatTheOwnerHoldsAreReplacedWithinThePace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "DaemonSet", 4)
	w.policy.Spec.HoldPolicy = v1alpha1.HoldByOwner
	w.policy.Spec.Partition = new(intstr.FromInt32(1))
	w.edit(debug)
	w.rounds(40)
	if w.created != 3 || w.worst != 1 || w.policy.Status.UpdatedPods != 3 {
		t.Errorf("%d pods were replaced, %d at a time, %d are updated; want 3, 1, 3", w.created, w.worst, w.policy.Status.UpdatedPods)
	}
}

// Kubelet stops a container before it pulls the new image, and does not start this one again if the pull fails.
func TestImageOfAContainerThatIsNotRestartedIsNotChangedInPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "Deployment", 2)
	once := func(image string) func(*corev1.PodTemplateSpec) {
		return func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Image, t.Spec.Containers[0].RestartPolicy = image, new(corev1.ContainerRestartPolicyNever)
		}
	}
	w.edit(once("app:1"))
	w.rounds(20)
	w.created = 0
	w.policy.Spec.PodUpdatePolicy = v1alpha1.PodUpdateInPlaceOnly
	w.edit(once("app:2"))
	if w.rounds(20); w.images()["app:1"] != 2 || w.progressing() != "False NotInPlace" {
		t.Errorf("images %v, %s", w.images(), w.progressing())
	}
}

func TestReleaseGivesBackWhatTheOwnerHasChosen(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind   string
		change func(*world)
		spec   string
	}{
		"Deployment": {"Deployment", func(*world) {}, `{"paused":null}`},
		"StatefulSet with a partition": {"StatefulSet", func(w *world) {
			*w.statefulSet.Spec.UpdateStrategy.RollingUpdate.Partition = v1alpha1.HeldPartition - 2
		}, `{"updateStrategy":{"rollingUpdate":{"partition":2}}}`},
		"DaemonSet": {"DaemonSet", func(*world) {}, `{"updateStrategy":{"type":"RollingUpdate"}}`},
		"StatefulSet whose owner has chosen OnDelete meanwhile": {"StatefulSet", func(w *world) {
			w.statefulSet.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		}, `null`},
		"DaemonSet whose owner has chosen OnDelete meanwhile": {"DaemonSet", func(w *world) {
			w.daemonSet.Spec.UpdateStrategy.RollingUpdate = nil
		}, `null`},
	} {
		w := newWorld(t, tt.kind, 2)
		w.edit(image("app:2"))
		tt.change(w)
		got, err := json.Marshal(w.target().Release()["spec"])
		if err != nil || string(got) != tt.spec {
			t.Errorf("%s: %s, %v; want %s", name, got, err, tt.spec)
		}
	}
}

// Nobody would release a workload that the API server holds by its label while its policy is refused, or after it was deleted.
func TestWorkloadThatCannotBeReadLosesTheLabel(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(time.Unix(1_700_000_000, 0))
	for name, deleted := range map[string]*metav1.Time{"policy": nil, "deleted policy": &now} {
		policy := &v1alpha1.InPlaceUpdatePolicy{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{v1alpha1.FinalizerInPlaceUpdate}, DeletionTimestamp: deleted}}
		target := &workload.Workload{Kind: "Deployment", ObjectMeta: metav1.ObjectMeta{UID: "u", Labels: map[string]string{v1alpha1.LabelHoldUID: "u"}}}
		observed := workload.Observation{Workload: target, Unreadable: "out of bounds"}
		got := workload.Next(policy, observed, now.Time)
		if len(got.Actions) != 1 || got.Actions[0].Kind != workload.ActionHoldLabel || got.Actions[0].Label != "" || !got.Finalizer {
			t.Errorf("%s: actions %+v, finalizer %t", name, got.Actions, got.Finalizer)
		}
		target.Labels = nil
		if got := workload.Next(policy, observed, now.Time); len(got.Actions) != 0 || got.Finalizer != (deleted == nil) {
			t.Errorf("%s, label removed: actions %+v, finalizer %t", name, got.Actions, got.Finalizer)
		}
	}
}
