package crr_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

// The instance to stop must be known exactly: an ID of another runtime may belong to another container.
func TestPlanStopsOnlyAnInstanceThatItsRuntimeKnows(t *testing.T) {
	t.Parallel()
	recorded := func(containerID string) func(*fixture) {
		return func(s *fixture) {
			s.request.Status.Phase = v1beta1.ContainerRecreateRequestRecreating
			s.request.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{
				{Name: "app", Phase: v1beta1.ContainerRecreateRequestPending, ContainerID: containerID},
			}
		}
	}
	for name, tt := range map[string]struct {
		change  func(*fixture)
		stopped bool
	}{
		"its runtime":                   {func(*fixture) {}, true},
		"another runtime":               {func(s *fixture) { s.observed.Runtime = "cri-o" }, false},
		"a runtime without a name":      {func(s *fixture) { s.observed.Runtime = "" }, true},
		"no instance":                   {func(s *fixture) { s.request.Spec.Containers[0].StatusContext = nil }, false},
		"an empty instance":             {func(s *fixture) { s.request.Spec.Containers[0].StatusContext.ContainerID = "" }, false},
		"an instance without a runtime": {func(s *fixture) { s.request.Spec.Containers[0].StatusContext.ContainerID = "app0" }, false},
		"its recorded instance":         {recorded(id("app", 0).String()), true},
		"an unreadable record":          {recorded("app0"), false},
	} {
		got := newFixture().with(tt.change).plan()
		if (got.Stop != nil) != tt.stopped {
			t.Errorf("%s: %+v", name, got.Stop)
		}
		if !tt.stopped {
			wantOutcome(t, got, crr.ReasonInvalidRequest)
		}
	}
}

func TestPlanWithoutAStrategyStopsTheContainersAndEndsWithTheFirstFailure(t *testing.T) {
	t.Parallel()
	s := newFixture("app", "log")
	s.request.Spec.Strategy = nil
	s.stored(s.plan(), time.Second).runs("app", 1).ready("app", 1)
	if got := s.plan(); got.Stop == nil || got.Stop.Container != "log" {
		t.Fatalf("%+v (%s)", got.Stop, got.Why)
	}
	s.observed.Unstoppable = map[string]string{"log": "its processes cannot be seen"}
	wantOutcome(t, s.plan(), crr.ReasonNotPossibleHere)
}

// Without a runtime nothing else tells the instance that was stopped from the one that is started after it.
func TestPlanBySignalsRecordsTheInstanceThatItFindsBeforeItIsStopped(t *testing.T) {
	t.Parallel()
	s := forced(signalled(corev1.RestartPolicyAlways, 30)).runs("app", 1)
	got := s.plan()
	wantWait(t, got)
	if state := got.Status.ContainerRecreateStates[0]; state.ContainerID != id("app", 1).String() || !got.Again.Equal(s.now) {
		t.Fatalf("%+v, again at %s", state, got.Again)
	}
	if got = s.stored(got, 0).plan(); got.Stop == nil || got.Stop.ID != id("app", 1) {
		t.Errorf("%+v", got.Stop)
	}
	s = forced(signalled(corev1.RestartPolicyAlways, 30)).runs("app", 1)
	s.observed.DropsIDs = true
	wantOutcome(t, s.plan(), crr.ReasonNotPossibleHere)
}

// The grace period is counted from the beginning of the stop, by whichever daemon.
func TestPlanRecordsWhenAStopHasBegun(t *testing.T) {
	t.Parallel()
	began := func(decision crr.Decision) *metav1.MicroTime {
		return decision.Status.ContainerRecreateStates[0].StopBegan
	}
	s := newFixture()
	first := s.plan()
	if at := began(first); at == nil || !at.Time.Equal(noon) {
		t.Fatalf("begun at %s", at)
	}
	s.stored(first, 5*time.Second)
	if at := began(s.plan()); !at.Time.Equal(noon) {
		t.Errorf("begun at %s by the daemon that follows", at)
	}
	s.observed.Actions["app"] = crr.ActionState{Err: "no connection", Transient: true, Failures: 1, Done: s.now}
	if at := began(s.plan()); at == nil || !at.Time.Equal(noon) {
		t.Errorf("begun at %s after a stop that has failed", at)
	}
	s.observed.Actions["app"] = crr.ActionState{Err: "no connection", Transient: true, Failures: 1, Done: s.now, Unbegun: true}
	if at := began(s.plan()); at != nil {
		t.Errorf("begun at %s although the runtime was not reached", at)
	}
	s.now = s.now.Add(time.Minute)
	if got := s.plan(); got.Stop == nil || !began(got).Time.Equal(s.now) {
		t.Errorf("begun at %s by the next try", began(got))
	}
	later := newFixture()
	later.observed.Later = true
	if at := began(later.plan()); at != nil {
		t.Errorf("begun at %s although it is stopped later", at)
	}
}

// The pod ends with its last container; what a container is reported to be counts together with what the runtime has.
func TestOverrideLooksForAnotherContainerThatRuns(t *testing.T) {
	t.Parallel()
	both := func(s *fixture) { s.request.Spec.Containers = newFixture("app", "log").request.Spec.Containers }
	for name, tt := range map[string]struct {
		change  func(*fixture)
		stopped bool
	}{
		"the instances of one that is not asked for are not known": {func(s *fixture) { s.missing("log") }, true},
		"the other runs":                     {both, true},
		"the other has ended":                {func(s *fixture) { both(s); s.exited("log", 0, 0) }, false},
		"the other is gone":                  {func(s *fixture) { both(s); s.missing("log") }, false},
		"kubelet reports an instance before": {func(s *fixture) { both(s); s.runs("log", 1) }, false},
		"the other is being stopped":         {func(s *fixture) { both(s); s.observed.Actions["log"] = crr.ActionState{Running: true} }, false},
	} {
		s := overriding(corev1.RestartPolicyNever, "app")
		tt.change(s)
		if got := s.plan(); (got.Stop != nil && got.Stop.Container == "app") != tt.stopped {
			t.Errorf("%s: %+v (%s)", name, got.Stop, got.Why)
		}
	}
}

// Of two reasons the one is given that says more: what has become of the pod, then what is wrong with the request, then the time.
func TestReasonOfARequestThatEndsForTwo(t *testing.T) {
	t.Parallel()
	late := func(s *fixture) {
		s.request.Spec.ActiveDeadlineSeconds = new(int64(5))
		s.now = noon.Add(time.Hour)
	}
	for name, tt := range map[string]struct {
		change func(*fixture)
		want   string
	}{
		"the pod is gone, and it is late":      {func(s *fixture) { late(s); s.observed.Pod = nil }, crr.ReasonPodGone},
		"the pod has ended, and it is late":    {func(s *fixture) { late(s); s.observed.Pod.Status.Phase = corev1.PodFailed }, crr.ReasonPodGone},
		"no containers, and it is late":        {func(s *fixture) { late(s); s.request.Spec.Containers = nil }, crr.ReasonInvalidRequest},
		"no containers, and the pod is gone":   {func(s *fixture) { s.request.Spec.Containers, s.observed.Pod = nil, nil }, crr.ReasonPodGone},
		"it cannot be stopped, and it is late": {func(s *fixture) { late(s); s.observed.Unstoppable = map[string]string{"app": "no"} }, crr.ReasonDeadlineExceeded},
		"the runtime is down, the pod is gone": {func(s *fixture) { s.observed.Unseen, s.observed.Pod = "down", nil }, crr.ReasonPodGone},
	} {
		s := newFixture().with(tt.change)
		wantOutcome(t, s.plan(), tt.want)
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// A failed request names one of its containers: the first that has failed. So does one that waits for kubelet's back-off.
func TestMessageNamesTheFirstOfTwoContainers(t *testing.T) {
	t.Parallel()
	s := newFixture("log", "app")
	s.request.Spec.Strategy.FailurePolicy = v1beta1.FailurePolicyIgnore
	s.observed.Unstoppable = map[string]string{"app": "app cannot be seen", "log": "log cannot be seen"}
	got := s.plan()
	wantOutcome(t, got, crr.ReasonContainerFailed)
	wantDiff(t, "message", got.Status.Message, "container log: log cannot be seen")

	s = newFixture("log", "app").with(respectBackoff).exited("log", 3, 1).crashLoop("log", 3).exited("app", 3, 1).crashLoop("app", 3)
	s.request.Spec.Containers[0].StatusContext.ContainerID = id("log", 3).String()
	wantDiff(t, "message", s.plan().Status.Message, "container log: kubelet back-off until 2026-11-21T12:00:40Z")
}

// What kubelet says of a back-off counts where the instance alone does not show it, and removing an instance is left out where neither does.
func TestPlanRemovesAnInstanceThatKubeletBacksOffFrom(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fixture *fixture
		removed bool
	}{
		"kubelet says so":           {newFixture().begun(t).exited("app", 0, 143).crashLoop("app", 0), true},
		"kubelet does not":          {newFixture().begun(t).exited("app", 0, 143), false},
		"override of policy Always": {overriding(corev1.RestartPolicyAlways, "app").begun(t).exited("app", 0, 143), false},
	} {
		if got := tt.fixture.plan(); (got.Start != nil) != tt.removed {
			t.Errorf("%s: %+v (%s)", name, got.Start, got.Why)
		}
	}
}

// Kubelet is woken less and less often; that it keeps its back-off is concluded from two attempts, not from one.
func TestPlanWakesKubeletLessAndLessOften(t *testing.T) {
	t.Parallel()
	for touches, wait := range map[int]time.Duration{0: 1200 * time.Millisecond, 1: 2400 * time.Millisecond, 3: 9600 * time.Millisecond} {
		s := newFixture().begun(t).missing("app")
		s.observed.Actions["app"] = crr.ActionState{Done: s.now, Touches: touches}
		wantDiff(t, "wait after touches", s.plan().Again.Sub(s.now), wait)
	}
	s := newFixture().begun(t).missing("app").crashLoop("app", 3)
	s.observed.Actions["app"] = crr.ActionState{Done: s.now.Add(-time.Minute), Touches: 1}
	if s.plan().Start == nil {
		t.Error("given up after one attempt")
	}
}
