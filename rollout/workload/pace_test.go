package workload_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// kubectl rollout undo goes to the template that was left, and back. Of equal ReplicaSets the controller takes the older.
func TestFormerTemplateStaysInTheHistoryOfADeployment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "Deployment", 3)
	for i, to := range []string{"app:2", "app:1", "app:2", "app:3", "app:1"} {
		w.edit(image(to))
		w.rounds(40)
		if w.images()[to] != 3 || w.created > 0 || w.progressing() != "True Completed" {
			t.Fatalf("update %d to %s: images %v, %d pods created, %s", i, to, w.images(), w.created, w.progressing())
		}
	}
	kept := map[string]int32{}
	for _, r := range w.replicaSets {
		kept[r.Spec.Template.Spec.Containers[0].Image] = *r.Spec.Replicas
	}
	if len(w.replicaSets) != 3 || kept["app:1"] != 3 || kept["app:2"] != 0 || kept["app:3"] != 0 {
		t.Errorf("%d ReplicaSets: %v", len(w.replicaSets), kept)
	}
}

// A ReplicaSet that was created for a former template may have got another one since, by an undo.
func TestUpdateAfterAnUndoEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "Deployment", 2)
	for _, is := range []string{"app:2", "app:1", "app:3", "app:1", "app:4"} {
		w.edit(image(is))
		w.rounds(30)
		if w.progressing() != "True Completed" || w.images()[is] != 2 || w.created > 0 {
			t.Fatalf("%s: %s, images %v, %d pods were created", is, w.progressing(), w.images(), w.created)
		}
	}
	labels := map[string]bool{}
	for _, r := range w.replicaSets {
		labels[r.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey]] = true
	}
	if len(labels) != len(w.replicaSets) {
		t.Errorf("%d ReplicaSets have the selectors %v", len(w.replicaSets), labels)
	}
}

// An undo makes a new revision, and the one that is left keeps its number, as without Refit.
func TestRevisionsAreNumberedAsByTheDeploymentController(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "Deployment", 2)
	for _, is := range []string{"app:2", "app:1"} {
		w.edit(image(is))
		w.rounds(30)
	}
	got := map[string]string{}
	for _, r := range w.replicaSets {
		got[r.Annotations["deployment.kubernetes.io/revision"]] = r.Spec.Template.Spec.Containers[0].Image
	}
	if diff := cmp.Diff(map[string]string{"2": "app:2", "3": "app:1"}, got); diff != "" {
		t.Error(diff)
	}
}

// The owner asks for no history: the controller of the Deployment would delete such a ReplicaSet at once.
func TestNoFormerTemplateIsKeptWithRevisionHistoryLimitZero(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "Deployment", 2)
	w.deployment.Spec.RevisionHistoryLimit = new(int32(0))
	w.edit(image("app:2"))
	w.rounds(30)
	if len(w.replicaSets) != 1 || w.images()["app:2"] != 2 || w.created > 0 || w.progressing() != "True Completed" {
		t.Errorf("%d ReplicaSets, images %v, %d pods created, %s", len(w.replicaSets), w.images(), w.created, w.progressing())
	}
}

// A pod that the ReplicaSet creates in the middle has the former template.
func TestPodsThatAreCreatedMeanwhileAreUpdatedToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "Deployment", 3)
	w.edit(image("app:2"))
	w.rounds(4)
	w.deployment.Spec.Replicas = new(int32(5))
	w.rounds(60)
	if w.images()["app:2"] != 5 || w.created != 2 || w.progressing() != "True Completed" {
		t.Errorf("images %v, %d pods created, %s", w.images(), w.created, w.progressing())
	}
}

func TestPausedDeploymentOfItsOwnerIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "Deployment", 2)
	w.edit(image("app:2"))
	delete(w.deployment.Labels, v1alpha1.LabelHeld) // the owner has paused it
	w.rounds(20)
	if w.images()["app:1"] != 2 || w.progressing() != "Unknown Paused" {
		t.Errorf("images %v, %s", w.images(), w.progressing())
	}
	w.policy.Spec.HoldPolicy = v1alpha1.HoldByOwner
	w.rounds(40)
	if w.images()["app:2"] != 2 || w.progressing() != "True Completed" || !w.deployment.Spec.Paused {
		t.Errorf("held by the owner: images %v, %s, paused %t", w.images(), w.progressing(), w.deployment.Spec.Paused)
	}
}

func TestWorkloadThatItsOwnerDoesNotHoldIsReported(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 2)
		w.policy.Spec.HoldPolicy = v1alpha1.HoldByOwner
		w.rounds(3)
		if c := meta.FindStatusCondition(w.policy.Status.Conditions, v1alpha1.ConditionStalled); c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonNotHeld {
			t.Errorf("%s: Stalled is %+v", kind, c)
		}
	}
}

func TestPartitionThatIsWrittenLateLeavesTheOtherPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "Deployment", 3)
	w.policy.Spec.Partition = new(intstr.FromInt32(1))
	w.edit(image("app:2"))
	w.rounds(40)
	w.policy.Spec.Partition = new(intstr.FromInt32(3))
	if w.rounds(3); w.images()["app:2"] != 2 || w.message() != "spec.partition leaves 1 pod as it is" {
		t.Errorf("images %v, %s", w.images(), w.message())
	}
}

// The controller does not continue its rollout while the Deployment is paused.
func TestRolloutThatTheOwnerPausedIsReported(t *testing.T) {
	t.Parallel()
	for _, policy := range []v1alpha1.HoldPolicy{v1alpha1.HoldWhileUpdating, v1alpha1.HoldByOwner} {
		w := newWorld(t, "Deployment", 3)
		w.policy.Spec.HoldPolicy = policy
		image("app:2")(w.template())
		w.addReplicaSet("web-new", w.template(), 1, "2")
		w.deployment.Generation++
		w.deployment.Spec.Paused = true
		if w.rounds(5); w.images()["app:2"] != 1 || w.progressing() != "Unknown Paused" || !strings.Contains(w.message(), "resume the Deployment") {
			t.Errorf("%s: images %v, %s: %s", policy, w.images(), w.progressing(), w.message())
		}
	}
}

func TestRolloutRestartReplacesPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "Deployment", 2)
	w.edit(func(t *corev1.PodTemplateSpec) {
		t.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-11-26T00:00:00Z"}
	})
	if w.rounds(20); w.created != 2 || w.progressing() != "True Completed" {
		t.Errorf("%d pods were created, %s", w.created, w.progressing())
	}
}

// The API server does not hold it, so nobody has to act, whatever the policy says about other changes.
func TestRolloutRestartIsNotReportedAsRefused(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 2)
		w.policy.Spec.PodUpdatePolicy = v1alpha1.PodUpdateInPlaceOnly
		w.edit(func(t *corev1.PodTemplateSpec) {
			t.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-11-26T00:00:00Z"}
		})
		w.controller()
		w.release()
		w.meta().Generation--
		if w.look(-1); w.progressing() != "True Replacing" {
			t.Errorf("%s: %s in the middle of the restart", kind, w.progressing())
		}
	}
}

func TestStepsWaitUntilTheyArePromoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "DaemonSet", 4)
	w.policy.Spec.Steps = []v1alpha1.RolloutStep{
		{Pods: intstr.FromInt32(1), Pause: &v1alpha1.StepPause{}}, {Pods: intstr.FromString("50%"), Pause: &v1alpha1.StepPause{Seconds: new(int32(30))}},
	}
	w.edit(image("app:2"))
	w.rounds(40)
	if w.images()["app:2"] != 1 || w.progressing() != "True Step" || *w.policy.Status.Step != 0 {
		t.Fatalf("images %v, %s, step %d", w.images(), w.progressing(), *w.policy.Status.Step)
	}
	w.policy.Spec.Promoted = &v1alpha1.StepReference{Revision: "another", Step: 0}
	if w.rounds(10); w.images()["app:2"] != 1 {
		t.Errorf("images %v after a promotion of another revision", w.images())
	}
	w.policy.Spec.Promoted.Revision = w.policy.Status.UpdateRevision
	if w.rounds(20); w.images()["app:2"] != 2 || w.progressing() != "True Step" {
		t.Errorf("images %v, %s in the second step", w.images(), w.progressing())
	}
	if w.rounds(60); w.images()["app:2"] != 4 || w.progressing() != "True Completed" {
		t.Errorf("images %v, %s at the end", w.images(), w.progressing())
	}
}

func TestPaceOfThePolicy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set         func(*v1alpha1.InPlaceUpdatePolicySpec)
		updated     int
		progressing string
		worst       int
	}{
		"paused": {func(s *v1alpha1.InPlaceUpdatePolicySpec) { s.Paused = true }, 0, "Unknown Paused", 0},
		"partition": {func(s *v1alpha1.InPlaceUpdatePolicySpec) {
			s.Partition = new(intstr.FromString("25%"))
		}, 3, "True Partition", 1},
		"half at a time": {func(s *v1alpha1.InPlaceUpdatePolicySpec) {
			s.MaxUnavailable = new(intstr.FromString("50%"))
		}, 4, "True Completed", 2},
	} {
		w := newWorld(t, "Deployment", 4)
		tt.set(&w.policy.Spec)
		w.edit(image("app:2"))
		w.rounds(40)
		if w.images()["app:2"] != tt.updated || w.progressing() != tt.progressing || w.worst != tt.worst {
			t.Errorf("%s: images %v, %s, %d unavailable at a time", name, w.images(), w.progressing(), w.worst)
		}
	}
}

func TestPolicyThatIsDeletedInTheMiddle(t *testing.T) {
	t.Parallel()
	for policy, want := range map[v1alpha1.UpdateDeletionPolicy]string{
		v1alpha1.UpdateDeletionFinish: "app:2", v1alpha1.UpdateDeletionUndo: "app:1", v1alpha1.UpdateDeletionRelease: "app:2",
	} {
		w := newWorld(t, "StatefulSet", 4)
		w.policy.Spec.DeletionPolicy = policy
		w.edit(image("app:2"))
		w.rounds(6)
		now := metav1.NewTime(w.now)
		w.policy.DeletionTimestamp = &now
		w.rounds(60)
		if w.images()[want] != 4 || w.last.Finalizer || (w.created > 0) != (policy == v1alpha1.UpdateDeletionRelease) {
			t.Errorf("%s: images %v, %d pods created, finalizer %t", policy, w.images(), w.created, w.last.Finalizer)
		}
	}
}
