package crr_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
)

// noon is the creation of every request in these fixtures, and now unless a fixture says otherwise.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// fixture is one request, what is observed, and the clock.
type fixture struct {
	request  *crr.Request
	observed crr.Observation
	options  crr.Options
	now      time.Time
}

// newFixture is a pod of two long-running containers, app and log, and a request to recreate app.
func newFixture(containers ...string) *fixture {
	if len(containers) == 0 {
		containers = []string{"app"}
	}
	s := &fixture{now: noon}
	s.request = &crr.Request{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "again", Generation: 1, CreationTimestamp: metav1.NewTime(noon),
	}}
	s.request.Spec.PodName = "web"
	for _, name := range containers {
		s.request.Spec.Containers = append(s.request.Spec.Containers, v1beta1.ContainerRecreateRequestContainer{
			Name:          name,
			StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: id(name, 0).String()},
		})
	}
	s.request.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{FailurePolicy: v1beta1.FailurePolicyFail}
	s.observed.Runtime = "containerd"
	s.observed.Instances = map[string][]crr.Instance{}
	s.observed.Actions = map[string]crr.ActionState{}
	s.observed.Pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"}}
	s.observed.Pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	s.observed.Pod.Status.Phase = corev1.PodRunning
	for _, name := range []string{"app", "log"} {
		s.observed.Pod.Spec.Containers = append(s.observed.Pod.Spec.Containers, corev1.Container{Name: name})
		s.runs(name, 0).ready(name, 0)
	}
	return s
}

func id(container string, restarts int32) identity.ContainerID {
	return identity.ContainerID{Runtime: "containerd", ID: fmt.Sprintf("%s%d", container, restarts)}
}

// runs makes the instance with so many restarts before it the newest, up since an hour.
func (s *fixture) runs(container string, restarts int32) *fixture {
	return s.instance(container, crr.Instance{
		ID: id(container, restarts), State: identity.StateRunning, RestartCount: restarts, StartedAt: s.now.Add(-time.Hour),
	})
}

// restarted is runs with a start a minute ago, so that kubelet would back off from its end.
func (s *fixture) restarted(container string, restarts int32) *fixture {
	return s.instance(container, crr.Instance{
		ID: id(container, restarts), State: identity.StateRunning, RestartCount: restarts, StartedAt: s.now.Add(-time.Minute),
	})
}

func (s *fixture) exited(container string, restarts, code int32) *fixture {
	return s.instance(container, crr.Instance{
		ID: id(container, restarts), State: identity.StateExited, RestartCount: restarts, ExitCode: code,
		StartedAt: s.now.Add(-time.Minute), FinishedAt: s.now,
	})
}

func (s *fixture) instance(container string, instance crr.Instance) *fixture {
	s.observed.Instances[container] = append([]crr.Instance{instance}, s.observed.Instances[container]...)
	return s
}

func (s *fixture) missing(container string) *fixture {
	delete(s.observed.Instances, container)
	return s
}

func (s *fixture) ready(container string, restarts int32) *fixture {
	return s.containerStatus(corev1.ContainerStatus{Name: container, ContainerID: id(container, restarts).String(), Ready: true,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
}

func (s *fixture) containerStatus(status corev1.ContainerStatus) *fixture {
	statuses := &s.observed.Pod.Status.ContainerStatuses
	for i := range *statuses {
		if (*statuses)[i].Name == status.Name {
			(*statuses)[i] = status
			return s
		}
	}
	*statuses = append(*statuses, status)
	return s
}

// crashLoop is kubelet's report of a container it holds back until 40 s after the end of its last run.
func (s *fixture) crashLoop(container string, restarts int32) *fixture {
	return s.containerStatus(corev1.ContainerStatus{
		Name: container, ContainerID: id(container, restarts).String(), RestartCount: restarts,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: "CrashLoopBackOff", Message: "back-off 40s restarting failed container=app pod=web_shop(u1)",
		}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(s.now)}},
	})
}

func (s *fixture) with(change func(*fixture)) *fixture {
	change(s)
	return s
}

func (s *fixture) plan() crr.Decision {
	return crr.Plan(s.request, s.observed, s.options, s.now)
}

// stored lets time pass after a decision was written.
func (s *fixture) stored(decision crr.Decision, later time.Duration) *fixture {
	s.request.Status = decision.Status
	s.now = s.now.Add(later)
	return s
}

// begun is the fixture after app's stop has been planned and its status stored.
func (s *fixture) begun(t *testing.T) *fixture {
	t.Helper()
	decision := s.plan()
	if decision.Stop == nil && decision.Start == nil {
		t.Fatalf("nothing begun: %s", decision.Why)
	}
	return s.stored(decision, time.Second)
}

func phases(status crr.Status) map[string]string {
	got := map[string]string{}
	for _, state := range status.ContainerRecreateStates {
		got[state.Name] = string(state.Phase)
	}
	return got
}

func wantOutcome(t *testing.T, decision crr.Decision, reason string) {
	t.Helper()
	if decision.Status.Phase != v1beta1.ContainerRecreateRequestCompleted || decision.Status.CompletionTime == nil {
		t.Fatalf("phase = %q, want Completed (%s)", decision.Status.Phase, decision.Why)
	}
	if decision.Stop != nil || decision.Start != nil {
		t.Errorf("an ended request still acts: %+v %+v", decision.Stop, decision.Start)
	}
	conditionType, other := v1beta1.ConditionFailed, v1beta1.ConditionSucceeded
	if reason == crr.ReasonSucceeded {
		conditionType, other = other, conditionType
	} else if decision.Status.Message == "" {
		t.Error("a failed request has no message")
	}
	condition := meta.FindStatusCondition(decision.Status.Conditions, conditionType)
	if condition == nil || condition.Status != metav1.ConditionTrue || condition.Reason != reason || condition.ObservedGeneration != 1 {
		t.Errorf("condition %s = %+v, want True with reason %s", conditionType, condition, reason)
	}
	if !meta.IsStatusConditionFalse(decision.Status.Conditions, other) {
		t.Errorf("condition %s is not False", other)
	}
	for _, state := range decision.Status.ContainerRecreateStates {
		if state.Phase != v1beta1.ContainerRecreateRequestSucceeded && state.Phase != v1beta1.ContainerRecreateRequestFailed {
			t.Errorf("container %s ended as %s", state.Name, state.Phase)
		}
	}
}

func wantWait(t *testing.T, decision crr.Decision) {
	t.Helper()
	if decision.Stop != nil || decision.Start != nil || decision.Status.Phase == v1beta1.ContainerRecreateRequestCompleted {
		t.Fatalf("stop %+v, start %+v, phase %s; want to wait", decision.Stop, decision.Start, decision.Status.Phase)
	}
}

func wantDiff(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
