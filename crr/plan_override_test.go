package crr_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
)

// overriding is a request that overrides the restart policy of the pod.
func overriding(policy corev1.RestartPolicy, containers ...string) *fixture {
	s := newFixture(containers...)
	s.observed.Pod.Spec.RestartPolicy = policy
	s.request.Annotations = map[string]string{v1beta1.AnnotationRestartPolicy: v1beta1.RestartPolicyOverride}
	return s
}

// ended is a container that kubelet reports as terminated.
func (s *fixture) ended(container string) *fixture {
	return s.exited(container, 0, 0).containerStatus(corev1.ContainerStatus{
		Name: container, ContainerID: id(container, 0).String(),
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}},
	})
}

// Kubelet ends a pod in which nothing runs, before it sees that the stopped instance has been removed.
func TestPodIsNotEndedByAnOverride(t *testing.T) {
	t.Parallel()
	never, onFailure := corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure
	for name, tt := range map[string]struct {
		policy  corev1.RestartPolicy
		change  func(*fixture)
		stopped bool
	}{
		"Never, another runs":    {never, func(*fixture) {}, true},
		"Never, the other ended": {never, func(s *fixture) { s.ended("log") }, false},
		"Never, no other": {never, func(s *fixture) {
			s.observed.Pod.Status.ContainerStatuses = s.observed.Pod.Status.ContainerStatuses[:1]
		}, false},
		"OnFailure, another runs": {onFailure, func(*fixture) {}, true},
		"OnFailure, no other":     {onFailure, func(s *fixture) { s.ended("log") }, false},
		"OnFailure, no other, but killed, which is a failure": {onFailure, func(s *fixture) {
			s.request.Spec.Strategy.TerminationGracePeriodSeconds = new(int64(0))
			s.ended("log")
		}, true},
		"Never, killed, no other": {never, func(s *fixture) {
			s.request.Spec.Strategy.TerminationGracePeriodSeconds = new(int64(0))
			s.ended("log")
		}, false},
		"Always, no other": {corev1.RestartPolicyAlways, func(s *fixture) { s.ended("log") }, true},
		"Never, own Always, no other": {never, func(s *fixture) {
			s.observed.Pod.Spec.Containers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			s.ended("log")
		}, true},
		"Never, only a native sidecar besides": {never, func(s *fixture) {
			s.ended("log")
			s.observed.Pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "mesh", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		}, false},
		"Never, a finished pod whose sidecars are to end": {never, func(s *fixture) {
			s.ended("log")
			s.observed.Pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ConditionSidecarTerminated, Status: corev1.ConditionTrue}}
		}, true},
		"Never, a pod that says its sidecars are not to end": {never, func(s *fixture) {
			s.ended("log")
			s.observed.Pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ConditionSidecarTerminated, Status: corev1.ConditionFalse}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := overriding(tt.policy, "app")
			tt.change(s)
			got := s.plan()
			if tt.stopped {
				if got.Stop == nil {
					t.Fatalf("not stopped: %s", got.Why)
				}
				return
			}
			wantOutcome(t, got, crr.ReasonRestartPolicyForbidsRestart)
			if state := got.Status.ContainerRecreateStates[0]; state.ContainerID != "" || state.IsKilled || !strings.Contains(state.Message, "no other container") {
				t.Errorf("not stopped, and the state says %+v", state)
			}
		})
	}
}

// Of several containers one always runs: the next is stopped when kubelet reports the one before it as running again.
func TestOverrideOfAllContainersStopsOneAtATime(t *testing.T) {
	t.Parallel()
	s := overriding(corev1.RestartPolicyNever, "app", "log")
	if got := s.plan(); got.Stop == nil || got.Stop.Container != "app" {
		t.Fatalf("first stopped: %+v", got.Stop)
	}
	s.begun(t)
	s.observed.Actions["app"] = crr.ActionState{Running: true}
	wantWait(t, s.plan())
	s.observed.Actions["app"] = crr.ActionState{Done: s.now}
	s.missing("app")
	wantNoStopYet := func(when string) {
		t.Helper()
		got := s.plan()
		if got.Stop != nil || got.Status.Phase == v1beta1.ContainerRecreateRequestCompleted {
			t.Fatalf("%s: %+v, phase %s", when, got.Stop, got.Status.Phase)
		}
		if state := got.Status.ContainerRecreateStates[1]; state.Phase != v1beta1.ContainerRecreateRequestPending || state.ContainerID != "" {
			t.Errorf("%s: the second container is %+v", when, state)
		}
	}
	wantNoStopYet("app is removed, and kubelet reports the old instance as running")
	s.runs("app", 1)
	wantNoStopYet("the runtime has the next instance, and kubelet reports the old one as running")
	s.containerStatus(corev1.ContainerStatus{
		Name: "app", ContainerID: id("app", 1).String(), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	})
	if got := s.plan(); got.Stop == nil || got.Stop.Container != "log" {
		t.Errorf("app runs again, not ready yet, and stopped is %+v (%s)", got.Stop, got.Why)
	}
}

// Where the first container does not come back the second is not stopped.
func TestOverrideOfAllContainersEndsWithTheFirstThatIsLost(t *testing.T) {
	t.Parallel()
	s := overriding(corev1.RestartPolicyNever, "app", "log")
	s.request.Spec.Strategy.FailurePolicy = v1beta1.FailurePolicyIgnore
	s.begun(t).runs("app", 1)
	s.observed.Pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 143}}
	got := s.plan()
	wantOutcome(t, got, crr.ReasonContainerFailed)
	if second := got.Status.ContainerRecreateStates[1]; second.ContainerID != "" || !strings.Contains(second.Message, "would end the pod") {
		t.Errorf("the second container: %+v", second)
	}
}

// The clock of the node may be set back after a container has started.
func TestStartInTheFutureIsWaitedForNoLongerThanAsked(t *testing.T) {
	t.Parallel()
	s := newFixture("app")
	s.request.Spec.Strategy.MinStartedSeconds = 5
	s.begun(t).instance("app", crr.Instance{ID: id("app", 1), State: identity.StateRunning, RestartCount: 1, StartedAt: s.now.Add(time.Hour)}).ready("app", 1)
	got := s.plan()
	wantWait(t, got)
	wantDiff(t, "looked at again after", got.Again.Sub(s.now), 5*time.Second)
}
