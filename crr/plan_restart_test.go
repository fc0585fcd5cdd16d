package crr_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

func TestPlanRestartsOneContainer(t *testing.T) {
	t.Parallel()
	s := newFixture()

	first := s.plan()
	wantDiff(t, "stop", first.Stop, &crr.Stop{Container: "app", ID: id("app", 0), Grace: 30 * time.Second})
	wantDiff(t, "phase", string(first.Status.Phase), "Recreating")
	wantDiff(t, "recorded before the stop", first.Status.ContainerRecreateStates[0].ContainerID, id("app", 0).String())

	s.stored(first, time.Second).exited("app", 0, 143)
	s.observed.Actions["app"] = crr.ActionState{Done: s.now}
	wantWait(t, s.plan())

	s.runs("app", 1)
	wantWait(t, s.plan())

	s.ready("app", 1)
	wantOutcome(t, s.plan(), crr.ReasonSucceeded)
	wantDiff(t, "message of a success, which OpenKruise clients read as failure", s.plan().Status.Message, "")
}

func TestPlanNeverStopsTwice(t *testing.T) {
	t.Parallel()
	tests := map[string]*fixture{
		"the stop is under way": newFixture().begun(t).with(func(s *fixture) {
			s.observed.Actions["app"] = crr.ActionState{Running: true}
		}),
		"the new instance runs":                              newFixture().begun(t).runs("app", 1),
		"the new instance runs, and force was asked":         forced(newFixture()).begun(t).runs("app", 1),
		"force: restarted twice since":                       forced(newFixture().runs("app", 1)).begun(t).runs("app", 2),
		"it was restarted by an image update before we came": newFixture().runs("app", 1),
		"it is down": newFixture().exited("app", 0, 1),
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if stop := s.plan().Stop; stop != nil {
				t.Errorf("planned to stop %v", stop.ID)
			}
		})
	}
}

// A daemon killed between the record and the stop, or during the stop, stops the same instance and no other.
func TestPlanResumesAfterKill(t *testing.T) {
	t.Parallel()
	s := forced(newFixture().runs("app", 1)).begun(t)
	s.observed.Actions = nil
	wantDiff(t, "stop", s.plan().Stop.ID, id("app", 1))
}

func forced(s *fixture) *fixture {
	s.request.Spec.Strategy.ForceRecreate = true
	return s
}

// An image update or a crash has restarted the container between admission and the first observation: that counts, or,
// with forceRecreate, the instance that runs now is stopped.
func TestPlanAlreadyRecreated(t *testing.T) {
	t.Parallel()
	s := newFixture().runs("app", 1).ready("app", 1)
	wantOutcome(t, s.plan(), crr.ReasonSucceeded)
	wantDiff(t, "forced stop", forced(s).plan().Stop.ID, id("app", 1))
}

func TestPlanJudgesByIdentityNotByClock(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"an hour behind": -time.Hour, "a day ahead": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture().begun(t)
			s.now = s.now.Add(skew)
			s.observed.ClockOffset = -skew
			s.runs("app", 1).ready("app", 1)
			s.observed.Instances["app"][0].StartedAt = noon.Add(skew).Add(-time.Hour)
			ended := s.plan()
			wantOutcome(t, ended, crr.ReasonSucceeded)
			wantDiff(t, "end, by the clock of the API server", ended.Status.CompletionTime.UTC(), s.now.Add(-skew).UTC())
		})
	}
}

func TestPlanWaitsForTheRightReadiness(t *testing.T) {
	t.Parallel()
	s := newFixture().begun(t).runs("app", 1) // the pod's status still shows the old instance, ready
	wantWait(t, s.plan())
	s.containerStatus(corev1.ContainerStatus{Name: "app", ContainerID: id("app", 1).String(), Ready: false})
	wantWait(t, s.plan())
	s.ready("app", 1)
	wantOutcome(t, s.plan(), crr.ReasonSucceeded)
}

func TestPlanMinStartedSeconds(t *testing.T) {
	t.Parallel()
	s := newFixture()
	s.request.Spec.Strategy.MinStartedSeconds = 10
	s.begun(t).runs("app", 1).ready("app", 1)
	s.observed.Instances["app"][0].StartedAt = s.now.Add(-4 * time.Second)
	wait := s.plan()
	wantWait(t, wait)
	wantDiff(t, "again", wait.Again.Sub(s.now), 6*time.Second)

	s.exited("app", 1, 1) // it flaps
	wantWait(t, s.plan())

	s.runs("app", 2).ready("app", 2)
	wantOutcome(t, s.plan(), crr.ReasonSucceeded)
}

func TestPlanCompletedIsNeverRevived(t *testing.T) {
	t.Parallel()
	s := newFixture()
	s.request.Status.Phase = v1beta1.ContainerRecreateRequestCompleted
	s.request.Status.Message = "ended by the manager"
	got := s.plan()
	wantDiff(t, "status", got.Status, s.request.Status)
	if got.Stop != nil {
		t.Error("stops for a completed request")
	}
	// Completed by a manager, then overwritten by a daemon of another make: the time of completion still ends it.
	s.request.Status.Phase = v1beta1.ContainerRecreateRequestRecreating
	s.request.Status.CompletionTime = &metav1.Time{Time: noon}
	if s.plan().Stop != nil {
		t.Error("stops for a request with a completion time")
	}
}

func TestPlanDeadlineMarksContainersFailed(t *testing.T) {
	t.Parallel()
	deadline := int64(5)
	s := newFixture("app", "log")
	s.request.Spec.ActiveDeadlineSeconds = &deadline
	first := s.plan()
	wantDiff(t, "again at the deadline", first.Again.Sub(noon), 5*time.Second)

	s.stored(first, 5*time.Second)
	ended := s.plan()
	wantOutcome(t, ended, crr.ReasonDeadlineExceeded)
	wantDiff(t, "phases", phases(ended.Status), map[string]string{"app": "Failed", "log": "Failed"})

	s.observed.ClockOffset = -2 * time.Second // our clock runs ahead of the API server's
	if s.plan().Status.Phase == v1beta1.ContainerRecreateRequestCompleted {
		t.Error("a clock that runs ahead cut the deadline short")
	}
}

func TestPlanPodGone(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*fixture){
		"no pod of that UID": func(s *fixture) { s.observed.Pod = nil },
		"being deleted":      func(s *fixture) { s.observed.Pod.DeletionTimestamp = &metav1.Time{Time: noon} },
		"ended":              func(s *fixture) { s.observed.Pod.Status.Phase = corev1.PodSucceeded },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantOutcome(t, newFixture().with(change).plan(), crr.ReasonPodGone)
		})
	}
}

// Otherwise kubelet would wait for its back-off until the second container has been restarted.
func TestPlanStartsTheFirstContainerBeforeItStopsTheSecond(t *testing.T) {
	t.Parallel()
	s := newFixture("app", "log").exited("app", 3, 1)
	first := s.plan()
	if first.Start == nil || first.Start.Container != "app" || first.Stop != nil {
		t.Fatalf("start %+v, stop %+v", first.Start, first.Stop)
	}
	s.stored(first, time.Second)
	s.runs("app", 4).ready("app", 4)
	if next := s.plan(); next.Start != nil || next.Stop == nil || next.Stop.Container != "log" {
		t.Errorf("then: start %+v, stop %+v", next.Start, next.Stop)
	}
}
