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

func TestPlanStopsOneAfterAnotherInSpecOrder(t *testing.T) {
	t.Parallel()
	s := newFixture("log", "app")
	wantDiff(t, "first", s.plan().Stop.Container, "log")
	s.begun(t)
	s.observed.Actions["log"] = crr.ActionState{Running: true}
	wantWait(t, s.plan())

	s.exited("log", 0, 0)
	s.observed.Actions["log"] = crr.ActionState{Done: s.now}
	wantDiff(t, "second, without waiting for the restart of the first", s.plan().Stop.Container, "app")
}

func TestPlanOrderedWaitsForTheRestart(t *testing.T) {
	t.Parallel()
	s := newFixture("log", "app")
	s.request.Spec.Strategy.OrderedRecreate = true
	s.begun(t).exited("log", 0, 0)
	wantWait(t, s.plan())
	s.runs("log", 1)
	wantWait(t, s.plan())
	s.ready("log", 1)
	wantDiff(t, "second", s.plan().Stop.Container, "app")
}

func TestPlanStopFailures(t *testing.T) {
	t.Parallel()
	failing := func(action crr.ActionState) *fixture {
		s := newFixture("app", "log").begun(t)
		action.Err = "stop container app: runtime says no"
		action.Done = s.now
		s.observed.Actions["app"] = action
		return s
	}
	t.Run("tried again after a moment", func(t *testing.T) {
		t.Parallel()
		s := failing(crr.ActionState{Failures: 3})
		again := s.plan()
		wantWait(t, again)
		wantDiff(t, "delay", again.Again.Sub(s.now), 4*time.Second)
		s.now = again.Again.Time
		wantDiff(t, "stop", s.plan().Stop.ID, id("app", 0))
	})
	t.Run("an unreachable runtime is no verdict", func(t *testing.T) {
		t.Parallel()
		s := failing(crr.ActionState{Failures: 50, Transient: true})
		wantWait(t, s.plan())
		wantDiff(t, "the longest delay", s.plan().Again.Sub(s.now), 30*time.Second)
	})
	t.Run("four times is no verdict yet", func(t *testing.T) {
		t.Parallel()
		wantWait(t, failing(crr.ActionState{Failures: 4}).plan())
	})
	t.Run("failurePolicy Fail ends the request and says why", func(t *testing.T) {
		t.Parallel()
		ended := failing(crr.ActionState{Failures: 5}).plan()
		wantOutcome(t, ended, crr.ReasonStopFailed)
		if !strings.Contains(ended.Status.Message, "runtime says no") {
			t.Errorf("message %q does not say why", ended.Status.Message)
		}
	})
	t.Run("failurePolicy Ignore goes on with the others", func(t *testing.T) {
		t.Parallel()
		s := failing(crr.ActionState{Failures: 5})
		s.request.Spec.Strategy.FailurePolicy = v1beta1.FailurePolicyIgnore
		next := s.plan()
		wantDiff(t, "stop", next.Stop.Container, "log")
		s.stored(next, time.Second).runs("log", 1).ready("log", 1)
		ended := s.plan()
		wantOutcome(t, ended, crr.ReasonContainerFailed)
		wantDiff(t, "phases", phases(ended.Status), map[string]string{"app": "Failed", "log": "Succeeded"})
	})
}

func TestPlanUnreadyGracePeriod(t *testing.T) {
	t.Parallel()
	grace := int64(20)
	drained := func(gate bool) *fixture {
		s := newFixture()
		s.request.Spec.Strategy.UnreadyGracePeriodSeconds = &grace
		if gate {
			s.observed.Pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "KruisePodReady"}}
		}
		return s
	}
	acquired := func(s *fixture) {
		s.request.Status.Conditions = append(s.request.Status.Conditions, metav1.Condition{
			Type: v1beta1.ConditionPreRecreateGrace, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon),
		})
	}
	t.Run("waits for the manager, then for the grace", func(t *testing.T) {
		t.Parallel()
		s := drained(true)
		first := s.plan()
		wantWait(t, first)
		wantDiff(t, "phase, which tells the manager to drain", string(first.Status.Phase), "Recreating")
		s.stored(first, 5*time.Second).with(acquired)
		wait := s.plan()
		wantWait(t, wait)
		wantDiff(t, "rest", wait.Again.Sub(s.now), 15*time.Second)
		s.now = wait.Again.Time
		wantDiff(t, "stop", s.plan().Stop.ID, id("app", 0))
	})
	t.Run("who does not ask for it does not wait", func(t *testing.T) {
		t.Parallel()
		for _, strategy := range []*v1beta1.ContainerRecreateRequestStrategy{nil, {FailurePolicy: v1beta1.FailurePolicyFail}} {
			s := drained(true)
			s.request.Spec.Strategy = strategy
			first := s.plan()
			if first.Stop == nil {
				t.Errorf("strategy %+v: %s; want a stop", strategy, first.Why)
			}
		}
	})
	t.Run("a clock that is wrong by hours cannot stretch it", func(t *testing.T) {
		t.Parallel()
		s := drained(true).with(acquired)
		s.now = noon.Add(-3 * time.Hour)
		wantDiff(t, "rest", s.plan().Again.Sub(s.now), 20*time.Second)
	})
	t.Run("without the readiness gate there is nothing to wait for", func(t *testing.T) {
		t.Parallel()
		wantDiff(t, "stop", drained(false).plan().Stop.ID, id("app", 0))
	})
	t.Run("a manager that is away stops nothing undrained", func(t *testing.T) {
		t.Parallel()
		s := drained(true)
		s.stored(s.plan(), time.Minute)
		wantOutcome(t, s.plan(), crr.ReasonDrainNotAcquired)
	})
}

// The hook that is executed is the pod's. What a request says of it may come from anybody who may create one.
func TestPlanPreStopOfThePod(t *testing.T) {
	t.Parallel()
	hook := func(s *fixture, handler *corev1.LifecycleHandler) *fixture {
		s.observed.Pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: handler}
		return s
	}
	drain := &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"drain"}}}
	forged := &v1beta1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"cat", "/secret"}}}

	s := hook(newFixture(), drain)
	wantDiff(t, "a request without a hook", s.plan().Stop.PreStop, drain)
	s.request.Spec.Containers[0].PreStop = forged
	wantDiff(t, "a request with another hook", s.plan().Stop.PreStop, drain)

	s = newFixture()
	s.request.Spec.Containers[0].PreStop = forged
	wantDiff(t, "a pod without a hook", s.plan().Stop.PreStop, (*corev1.LifecycleHandler)(nil))

	s = hook(newFixture(), drain)
	s.request.Spec.Strategy.TerminationGracePeriodSeconds = new(int64(0))
	wantDiff(t, "grace 0 means now", s.plan().Stop, &crr.Stop{Container: "app", ID: id("app", 0)})

	s = newFixture("mesh")
	s.observed.Pod.Spec.InitContainers = []corev1.Container{{Name: "mesh", Lifecycle: &corev1.Lifecycle{PreStop: drain}}}
	s.runs("mesh", 0)
	wantDiff(t, "a native sidecar", s.plan().Stop.PreStop, drain)
}

func TestPlanPreStopTCPSocket(t *testing.T) {
	t.Parallel()
	s := newFixture()
	s.observed.Pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{}}}
	ended := s.plan()
	wantOutcome(t, ended, crr.ReasonInvalidRequest)
	if !strings.Contains(ended.Status.Message, "tcpSocket") {
		t.Errorf("message %q does not name tcpSocket", ended.Status.Message)
	}
	s.request.Spec.Strategy.TerminationGracePeriodSeconds = new(int64(0))
	wantDiff(t, "without grace no hook is run", s.plan().Stop, &crr.Stop{Container: "app", ID: id("app", 0)})
}

// Each of the three may say how long; a daemon that follows has what is left, whatever its clock says.
func TestPlanGracePeriod(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*fixture)
		later  time.Duration
		want   time.Duration
	}{
		"nobody says":                 {func(*fixture) {}, 0, 30 * time.Second},
		"the pod":                     {func(s *fixture) { s.observed.Pod.Spec.TerminationGracePeriodSeconds = new(int64(7)) }, 0, 7 * time.Second},
		"the daemon that follows":     {func(*fixture) {}, 5 * time.Second, 25 * time.Second},
		"by the API server's clock":   {func(s *fixture) { s.observed.ClockOffset = time.Hour }, 5 * time.Second, 25 * time.Second},
		"the daemon of another clock": {func(s *fixture) { s.now, s.observed.ClockOffset = s.now.Add(-time.Hour), time.Hour }, 5 * time.Second, 25 * time.Second},
	} {
		s := newFixture().with(tt.change)
		first := s.plan()
		began := first.Status.ContainerRecreateStates[0].StopBegan
		if want := s.now.Add(s.observed.ClockOffset); !began.Time.Equal(want) {
			t.Errorf("%s: begun at %s, want %s", name, began, want)
		}
		if tt.later > 0 {
			first = s.stored(first, tt.later).plan()
		}
		wantDiff(t, name, first.Stop.Grace, tt.want)
	}
}
