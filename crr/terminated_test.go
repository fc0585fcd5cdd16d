package crr_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

// jobDone is a pod whose main containers have ended; OpenKruise's SidecarTerminator asks for its sidecar to be stopped.
func jobDone(change func(*corev1.Pod)) *fixture {
	s := forced(newFixture("log"))
	s.request.Spec.Strategy.FailurePolicy = v1beta1.FailurePolicyIgnore
	s.observed.Pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	s.observed.Pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ConditionSidecarTerminated, Status: corev1.ConditionTrue}}
	change(s.observed.Pod)
	return s
}

func TestSidecarsOfAFinishedPodAreStopped(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Pod){
		"running":       func(*corev1.Pod) {},
		"being deleted": func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} },
		"succeeded":     func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		"failed":        func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := jobDone(change)
			first := s.plan()
			wantDiff(t, "stop", first.Stop, &crr.Stop{Container: "log", ID: id("log", 0), Grace: 30 * time.Second})
			wantOutcome(t, s.stored(first, time.Second).exited("log", 0, 143).plan(), crr.ReasonSucceeded)
			wantOutcome(t, s.missing("log").plan(), crr.ReasonSucceeded)
		})
	}
}

// Anybody who may write the status of a pod could otherwise have a container that was stopped count as restarted.
func TestAPodIsNotFinishedByAConditionThatIsFalse(t *testing.T) {
	t.Parallel()
	s := jobDone(func(p *corev1.Pod) {
		p.Spec.RestartPolicy = corev1.RestartPolicyAlways
		p.Status.Conditions[0].Status = corev1.ConditionFalse
		p.DeletionTimestamp = &metav1.Time{Time: noon}
	})
	wantOutcome(t, s.plan(), crr.ReasonPodGone)
}

// Such a pod may run on for as long as a restart policy starts its sidecar again.
func TestSidecarOfAFinishedPodThatIsStartedAgainIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := jobDone(func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure })
	wantWait(t, s.begun(t).exited("log", 0, 143).plan())
}

// Kubelet starts nothing in a pod that is being deleted, whatever its restart policy is.
func TestSidecarOfAFinishedPodThatIsBeingDeletedIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := jobDone(func(p *corev1.Pod) {
		p.Spec.RestartPolicy = corev1.RestartPolicyAlways
		p.DeletionTimestamp = &metav1.Time{Time: noon}
	})
	wantOutcome(t, s.begun(t).exited("log", 0, 143).plan(), crr.ReasonSucceeded)
}

func TestMessageSaysUntilWhenKubeletBacksOff(t *testing.T) {
	t.Parallel()
	s := newFixture().with(func(s *fixture) { s.options.RespectBackoff = true })
	s.begun(t).exited("app", 0, 143).crashLoop("app", 0)
	s.observed.Actions["app"] = crr.ActionState{Done: s.now}
	until := s.now.Add(40 * time.Second).UTC().Format(time.RFC3339)
	s.now = s.now.Add(3 * time.Second)
	held := s.plan()
	wantWait(t, held)
	if !strings.Contains(held.Status.Message, until) || !strings.Contains(held.Status.Message, "container app") {
		t.Errorf("status.message = %q, want the container and %s", held.Status.Message, until)
	}
	s.stored(held, time.Minute).runs("app", 1)
	if started := s.plan(); started.Status.Message != "" {
		t.Errorf("status.message = %q after the start", started.Status.Message)
	}
	wantDiff(t, "message of a success", s.ready("app", 1).plan().Status.Message, "")
}

// OpenKruise up to 1.9 has no conditions, so that when a request was taken is known to the process alone.
func TestDrainIsNotWaitedForWithoutEndWhereConditionsAreNotStored(t *testing.T) {
	t.Parallel()
	s := newFixture()
	s.request.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(20))
	s.observed.Pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}}
	s.observed.TakenAt = s.now
	for range 3 {
		decision := s.plan()
		wantWait(t, decision)
		decision.Status.Conditions = nil
		s.stored(decision, 15*time.Second)
	}
	s.now = noon.Add(time.Minute)
	wantOutcome(t, s.plan(), crr.ReasonDrainNotAcquired)
}
