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

// The texts that a user reads in the request, and an operator in the daemon's log, at each step.
func TestPlanSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	gated := func(s *fixture) *fixture {
		s.observed.Pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}}
		s.request.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(30))
		return s
	}
	created := func(s *fixture) *fixture {
		return s.instance("app", crr.Instance{ID: id("app", 1), State: identity.StateCreated, RestartCount: 1})
	}
	unknown := func(s *fixture) *fixture {
		return s.instance("app", crr.Instance{ID: id("app", 1), State: identity.StateUnknown, RestartCount: 1})
	}
	for name, tt := range map[string]struct {
		fixture  *fixture
		phase    string // of the container
		isKilled bool
		message  string // of the container
		why      string // of the decision; empty: container and message
		recorded bool   // the instance to be replaced
	}{
		"being stopped":            {newFixture(), "Pending", false, "stopping", "", true},
		"being started":            {created(newFixture().begun(t)), "Recreating", false, "being started", "", true},
		"lost by the runtime":      {unknown(newFixture().begun(t)), "Recreating", false, "state unknown to the runtime", "", true},
		"running, not ready":       {newFixture().begun(t).runs("app", 1), "Recreating", true, "the new container is running; waiting for it to be ready", "", true},
		"the new one exited":       {newFixture().begun(t).exited("app", 1, 3), "Recreating", true, "the new container exited with code 3; waiting for kubelet to start it", "", true},
		"held by kubelet":          {newFixture().begun(t).exited("app", 0, 143).with(respectBackoff).crashLoop("app", 0), "Recreating", true, "stopped; waiting for kubelet to start it: kubelet back-off until 2026-11-21T12:00:41Z", "", true},
		"a reason of kubelet":      {newFixture().begun(t).exited("app", 0, 143).with(waitingWith("ErrImagePull")), "Recreating", true, "stopped; waiting for kubelet to start it: ErrImagePull", "", true},
		"waiting without a reason": {newFixture().begun(t).exited("app", 0, 143).with(waitingWith("")), "Recreating", true, "stopped; waiting for kubelet to start it", "", true},
		"the manager is to drain":  {gated(newFixture()), "Pending", false, "", "waiting for the manager to make the pod not ready", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tt.fixture
			s.now = s.now.Add(time.Hour) // no word of progress is held back any more
			decision := s.plan()
			state := decision.Status.ContainerRecreateStates[0]
			if string(state.Phase) != tt.phase || state.IsKilled != tt.isKilled || state.Message != tt.message || (state.ContainerID != "") != tt.recorded {
				t.Errorf("state %+v", state)
			}
			why := tt.why
			if why == "" {
				why = "container app: " + tt.message
			}
			wantDiff(t, "why", decision.Why, why)
		})
	}
}

func respectBackoff(s *fixture) { s.options.RespectBackoff = true }

func waitingWith(reason string) func(*fixture) {
	return func(s *fixture) {
		s.containerStatus(corev1.ContainerStatus{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}})
	}
}

// While the call of a stop lasts, an instance that has ended meanwhile keeps the next container waiting.
func TestPlanStopsTheNextContainerAfterTheCallHasReturned(t *testing.T) {
	t.Parallel()
	s := newFixture("app", "log").begun(t).exited("app", 0, 143)
	s.observed.Actions["app"] = crr.ActionState{Running: true}
	wantWait(t, s.plan())
	s.observed.Actions["app"] = crr.ActionState{Done: s.now}
	wantDiff(t, "stops", s.plan().Stop.Container, "log")
}

// A removal that failed is tried again after a while, and its error can be read until then.
func TestPlanRetriesARemoval(t *testing.T) {
	t.Parallel()
	s := newFixture().begun(t).exited("app", 1, 1)
	s.request.Status.ContainerRecreateStates[0].ContainerID = id("app", 1).String()
	first := s.plan()
	if first.Start == nil || first.Start.Remove == nil {
		t.Fatalf("start %+v", first.Start)
	}
	if got := first.Status.ContainerRecreateStates[0].Message; !strings.HasPrefix(got, "removing the exited instances") {
		t.Errorf("message %q", got)
	}
	s.observed.Actions["app"] = crr.ActionState{Done: s.now, Failures: 2, Err: "remove container app: busy"}
	held := s.plan()
	wantWait(t, held)
	wantDiff(t, "message", held.Status.ContainerRecreateStates[0].Message, "remove container app: busy: trying again")
	wantDiff(t, "again", held.Again.Time, s.now.Add(2*time.Second))
	s.now = s.now.Add(2 * time.Second)
	if s.plan().Start == nil {
		t.Error("not tried again")
	}
	// The last removal succeeded, and the instance is listed again nevertheless.
	s.observed.Actions["app"] = crr.ActionState{Done: s.now}
	if s.plan().Start == nil {
		t.Error("not removed at once after a success")
	}
}

// Under RespectBackoff kubelet is woken for a restart against the policy alone: nothing else starts such a container.
func TestPlanWakesKubeletForAnOverride(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy   corev1.RestartPolicy
		override bool
		want     bool
	}{
		"Never, overridden":  {corev1.RestartPolicyNever, true, true},
		"Always, overridden": {corev1.RestartPolicyAlways, true, false},
		"Always":             {corev1.RestartPolicyAlways, false, false},
		"Never":              {corev1.RestartPolicyNever, false, false},
	} {
		s := newFixture().with(respectBackoff).begun(t).missing("app")
		s.observed.Pod.Spec.RestartPolicy = tt.policy
		if tt.override {
			s.request.Annotations = map[string]string{v1beta1.AnnotationRestartPolicy: v1beta1.RestartPolicyOverride}
		}
		decision := s.plan()
		if got := decision.Start != nil && decision.Start.Touch; got != tt.want {
			t.Errorf("%s: woken %v, want %v", name, got, tt.want)
		}
	}
}

// Clocks of node and API server differ: what is compared with a time of the manager is corrected.
func TestPlanDrainByTheClockOfTheAPIServer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		since, offset time.Duration // of the condition, from our now; the API server's clock minus ours
		rest          time.Duration
	}{
		"clocks together":        {since: -10 * time.Second, rest: 20 * time.Second},
		"ours an hour behind":    {since: time.Hour - 10*time.Second, offset: time.Hour, rest: 20 * time.Second},
		"ours an hour ahead":     {since: -time.Hour - 10*time.Second, offset: -time.Hour, rest: 20 * time.Second},
		"a time yet to come":     {since: time.Hour, rest: 30 * time.Second},
		"the period is over":     {since: -30 * time.Second},
		"and has been for a day": {since: -24 * time.Hour},
	} {
		s := newFixture()
		s.observed.Pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}}
		s.request.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(30))
		s.observed.ClockOffset = tt.offset
		v1beta1.SetPreRecreateGrace(&s.request.Status, s.now.Add(tt.since), "drained")
		decision := s.plan()
		if tt.rest == 0 {
			if decision.Stop == nil {
				t.Errorf("%s: not stopped: %s", name, decision.Why)
			}
			continue
		}
		if decision.Stop != nil || !decision.Again.Equal(s.now.Add(tt.rest)) || decision.Why != "waiting unreadyGracePeriodSeconds" {
			t.Errorf("%s: stop %v, again in %s (%s), want %s", name, decision.Stop, decision.Again.Sub(s.now), decision.Why, tt.rest)
		}
	}
}

func TestPlanGivesTheManagerAMinuteToDrain(t *testing.T) {
	t.Parallel()
	s := newFixture()
	s.observed.Pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}}
	s.request.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(30))
	wantDiff(t, "again", s.plan().Again.Time, noon.Add(time.Minute))
}

func TestPlanSaysWhyARequestEnded(t *testing.T) {
	t.Parallel()
	s := newFixture().begun(t).runs("app", 1).ready("app", 1)
	wantDiff(t, "success", s.plan().Why, "every container has been recreated")
	s.observed.Pod = nil
	wantDiff(t, "failure", s.plan().Why, "pod has gone")
}

// A container that has succeeded has no message; the message of a stop's retry is removed.
func TestPlanSuccessClearsTheMessage(t *testing.T) {
	t.Parallel()
	s := newFixture("app", "log").begun(t).runs("app", 1).ready("app", 1)
	s.request.Status.ContainerRecreateStates[0].Message = "stop container app: trying again"
	state := s.plan().Status.ContainerRecreateStates[0]
	if state.Phase != v1beta1.ContainerRecreateRequestSucceeded || state.Message != "" {
		t.Errorf("state %+v", state)
	}
}

// minStartedSeconds counts from the start of the instance, and never longer than was asked for.
func TestPlanMinStartedSecondsSays(t *testing.T) {
	t.Parallel()
	s := newFixture().begun(t).restarted("app", 1).ready("app", 1)
	s.request.Spec.Strategy.MinStartedSeconds = 70
	decision := s.plan()
	wantDiff(t, "again", decision.Again.Time, s.now.Add(10*time.Second))
	wantDiff(t, "why", decision.Why, "container app: the new container is ready; waiting until it has been up for 1m10s")
	s.now = s.now.Add(10 * time.Second)
	wantOutcome(t, s.plan(), crr.ReasonSucceeded)
}

// A failure that is ignored does not keep the other containers from being stopped.
func TestPlanGoesOnAfterAnIgnoredFailure(t *testing.T) {
	t.Parallel()
	s := newFixture("app", "log")
	s.request.Spec.Strategy.FailurePolicy = v1beta1.FailurePolicyIgnore
	s.observed.Actions["app"] = crr.ActionState{Failures: 5, Err: "stop container app: broken", Done: s.now}
	decision := s.plan()
	if decision.Stop == nil || decision.Stop.Container != "log" {
		t.Errorf("stop %+v, states %+v", decision.Stop, decision.Status.ContainerRecreateStates)
	}
}
