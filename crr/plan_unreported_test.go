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

// reportedEnd is kubelet's report of the end of an instance.
func reportedEnd(container string, exitCode int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: container, ContainerID: id(container, 0).String(),
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode}},
	}
}

// While a container runs whose end kubelet has reported as final, kubelet reports no change of the pod: "Status update on
// pod aborted" in its log. A container of the pod that is restarted then runs, and its status stays as it was.
func TestRestartThatKubeletDoesNotReportBecauseOfAnotherContainerEnds(t *testing.T) {
	t.Parallel()
	silent := func(s *fixture) { s.runs("log", 1).containerStatus(reportedEnd("log", 143)) }
	for name, tt := range map[string]struct {
		change func(*fixture)
		up     time.Duration
		want   string // the reason; "": it waits
	}{
		"the other runs again":                  {silent, time.Minute, crr.ReasonRestartNotReported},
		"the other is not in the request":       {func(s *fixture) { silent(s); s.beside("log", identity.StateRunning) }, time.Minute, crr.ReasonRestartNotReported},
		"a report may still be on its way":      {silent, time.Second, ""},
		"the clock was set back since":          {silent, -time.Minute, crr.ReasonRestartNotReported},
		"kubelet had reported it before":        {func(s *fixture) { silent(s); s.ready("app", 1) }, time.Minute, crr.ReasonSucceeded},
		"reported, and not ready before":        {func(s *fixture) { silent(s); s.ready("app", 1).unready("app") }, time.Minute, crr.ReasonRestartNotReported},
		"the other has ended again":             {func(s *fixture) { s.exited("log", 1, 0).containerStatus(reportedEnd("log", 143)) }, time.Minute, ""},
		"the other has only ended":              {func(s *fixture) { s.ended("log") }, time.Minute, ""},
		"the other, not in the request, ended":  {func(s *fixture) { s.ended("log").beside("log", identity.StateExited) }, time.Minute, ""},
		"the other was removed":                 {func(s *fixture) { silent(s); s.missing("log") }, time.Minute, ""},
		"kubelet would take back that it ended": {func(s *fixture) { silent(s); s.observed.Pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }, time.Minute, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := overriding(corev1.RestartPolicyNever, "app").begun(t)
			s.instance("app", crr.Instance{ID: id("app", 1), State: identity.StateRunning, RestartCount: 1, StartedAt: s.now.Add(-tt.up)})
			tt.change(s)
			got := s.plan()
			if tt.want == "" {
				wantWait(t, got)
				if left := got.Again.Sub(s.now); name == "a report may still be on its way" && (left <= 0 || left > 10*time.Second) {
					t.Errorf("looked at again after %s", left)
				}
				return
			}
			wantOutcome(t, got, tt.want)
			if tt.want == crr.ReasonRestartNotReported && !strings.Contains(got.Status.Message, "while container log runs") {
				t.Errorf("message %q", got.Status.Message)
			}
		})
	}
}

// Seen on a cluster: the second container of three was restarted after kubelet had reported its end, and the third, which
// was restarted meanwhile, stayed Recreating without end.
func TestOverrideOfThreeContainersEndsAfterKubeletStopsReporting(t *testing.T) {
	t.Parallel()
	s := overriding(corev1.RestartPolicyNever, "app", "log")
	s.request.Spec.Strategy.FailurePolicy = v1beta1.FailurePolicyIgnore
	s.observed.Pod.Spec.Containers = append(s.observed.Pod.Spec.Containers, corev1.Container{Name: "web"})
	s.ready("web", 0).beside("web", identity.StateRunning)
	s.begun(t)
	s.observed.Actions["app"] = crr.ActionState{Done: s.now}
	if got := s.missing("app").plan(); got.Stop == nil || got.Stop.Container != "log" {
		t.Fatalf("web runs, and stopped is %+v (%s)", got.Stop, got.Why)
	}
	s.begun(t).runs("app", 1).runs("log", 1).containerStatus(reportedEnd("app", 143))
	got := s.plan()
	wantOutcome(t, got, crr.ReasonContainerFailed)
	for i, want := range []string{"it never takes that back", "while container app runs"} {
		if state := got.Status.ContainerRecreateStates[i]; state.Phase != v1beta1.ContainerRecreateRequestFailed || !strings.Contains(state.Message, want) {
			t.Errorf("%s: %s, %q", state.Name, state.Phase, state.Message)
		}
	}
}

// The status of a pod may call running what has ended, above all if kubelet does not report any more.
func TestPodIsNotEndedByAnOverrideWhereOnlyTheStatusCallsAnotherContainerRunning(t *testing.T) {
	t.Parallel()
	if got := overriding(corev1.RestartPolicyNever, "app").beside("log", identity.StateRunning).plan(); got.Stop == nil {
		t.Errorf("log runs: %s", got.Why)
	}
	for _, s := range []*fixture{
		overriding(corev1.RestartPolicyNever, "app").beside("log", identity.StateExited),
		overriding(corev1.RestartPolicyNever, "app").beside("another", identity.StateRunning), // the runtime has none of log
	} {
		wantOutcome(t, s.plan(), crr.ReasonRestartPolicyForbidsRestart)
	}
}

// beside makes an instance the newest one of a container that is not in the request.
func (s *fixture) beside(container string, state identity.State) *fixture {
	if s.observed.Beside == nil {
		s.observed.Beside = map[string]crr.Instance{}
	}
	beside := crr.Instance{ID: id(container, 0), State: state}
	if instances := s.observed.Instances[container]; len(instances) > 0 {
		beside.ID = instances[0].ID
	}
	s.observed.Beside[container] = beside
	return s.missing(container)
}

func (s *fixture) unready(container string) *fixture {
	for i := range s.observed.Pod.Status.ContainerStatuses {
		if status := &s.observed.Pod.Status.ContainerStatuses[i]; status.Name == container {
			status.Ready = false
		}
	}
	return s
}

// Once kubelet has reported an end as final the request cannot succeed, and the pod does not say why kubelet starts nothing.
func TestContainerThatKubeletNeitherStartsNorReportsIsNotWaitedForWithoutEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		touches  int
		since    time.Duration // the last touch
		reported bool
		want     string
	}{
		"after the last touch":               {5, 40 * time.Second, true, crr.ReasonRestartNotReported},
		"the last touch may still help":      {5, time.Second, true, ""},
		"the pod is touched again":           {4, time.Hour, true, ""},
		"kubelet will report when it starts": {5, time.Hour, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := overriding(corev1.RestartPolicyNever, "app").begun(t).missing("app")
			if tt.reported {
				s.containerStatus(reportedEnd("app", 0))
			}
			s.observed.Actions["app"] = crr.ActionState{Done: s.now.Add(-tt.since), Touches: tt.touches}
			got := s.plan()
			if tt.want != "" {
				wantOutcome(t, got, tt.want)
				return
			}
			if got.Status.Phase == v1beta1.ContainerRecreateRequestCompleted || (got.Start != nil) != (tt.touches < 5) {
				t.Errorf("start %+v, phase %s", got.Start, got.Status.Phase)
			}
			if tt.reported && got.Start == nil && !got.Again.After(s.now) {
				t.Error("never looked at again")
			}
		})
	}
}
