package crr_test

import (
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
)

func backoffMode(s *fixture, mode string) *fixture {
	s.request.Annotations = map[string]string{v1beta1.AnnotationRestartBackoff: mode}
	return s
}

// A plain stop if there would be no back-off; stop and remove if there would be.
func TestPlanRemovesOnlyWhereBackoffWouldBite(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		s    *fixture
		want bool
	}{
		"first restart":                             {s: newFixture(), want: false},
		"restarted a minute ago":                    {s: newFixture().restarted("app", 3), want: true},
		"restarted an hour ago":                     {s: newFixture().runs("app", 3), want: false},
		"the request respects back-off":             {s: backoffMode(newFixture().restarted("app", 3), "respect"), want: false},
		"the daemon respects back-off":              {s: respecting(), want: false},
		"the daemon does, the request asks to skip": {s: backoffMode(respecting(), "skip"), want: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantDiff(t, "remove", len(forced(tt.s).plan().Stop.Remove) > 0, tt.want)
		})
	}
}

func respecting() *fixture {
	return newFixture().restarted("app", 3).with(func(s *fixture) { s.options.RespectBackoff = true })
}

// The container sits in CrashLoopBackOff when the request comes: nothing is stopped, kubelet is made to start it.
func TestPlanStartsACrashLoopNow(t *testing.T) {
	t.Parallel()
	s := newFixture().exited("app", 3, 1).crashLoop("app", 3)
	s.request.Spec.Containers[0].StatusContext.ContainerID = id("app", 3).String()

	first := s.plan()
	wantDiff(t, "start", first.Start, &crr.Start{Container: "app", Remove: []identity.ContainerID{id("app", 3)}})

	s.stored(first, 0).missing("app")
	s.observed.Actions["app"] = crr.ActionState{Done: s.now}
	wait := s.plan()
	wantWait(t, wait)
	wantDiff(t, "one relist of kubelet", wait.Again.Sub(s.now), 1200*time.Millisecond)

	s.now = wait.Again.Time
	wantDiff(t, "touch", s.plan().Start, &crr.Start{Container: "app", Touch: true})

	s.runs("app", 4).ready("app", 4)
	wantOutcome(t, s.plan(), crr.ReasonSucceeded)
}

func TestPlanRespectsBackoffWhenAsked(t *testing.T) {
	t.Parallel()
	s := backoffMode(newFixture().exited("app", 3, 1).crashLoop("app", 3), "respect")
	got := s.plan()
	wantWait(t, got)
	if message := got.Status.ContainerRecreateStates[0].Message; !strings.Contains(message, "kubelet back-off until 2026-11-21T12:00:40Z") {
		t.Errorf("message %q does not say until when", message)
	}
}

// Kubelet keeps the instance before the last as well, and backs off from that one too. The stopped one goes last:
// should the removal be interrupted, it still shows that it was the newest.
func TestPlanRemovesEarlierInstancesFirst(t *testing.T) {
	t.Parallel()
	s := newFixture().missing("app").exited("app", 2, 143).restarted("app", 3)
	s.request.Spec.Containers[0].StatusContext.ContainerID = id("app", 3).String()
	wantDiff(t, "removed with the stop", s.plan().Stop.Remove, []identity.ContainerID{id("app", 2), id("app", 3)})
	s.begun(t).missing("app").exited("app", 2, 143).exited("app", 3, 143)
	wantDiff(t, "removed after an interruption", s.plan().Start.Remove, []identity.ContainerID{id("app", 2), id("app", 3)})
}

// A crash of the new instance is a crash: kubelet's back-off for it is respected.
func TestPlanLeavesARealCrashAlone(t *testing.T) {
	t.Parallel()
	s := newFixture().restarted("app", 3)
	s.request.Spec.Containers[0].StatusContext.ContainerID = id("app", 3).String()
	s.begun(t).exited("app", 4, 1).crashLoop("app", 4)
	wantWait(t, s.plan())
}

// The daemon died between the stop and the removal, or kubelet has seen the exit first.
func TestPlanFinishesAnInterruptedRemoval(t *testing.T) {
	t.Parallel()
	s := newFixture().restarted("app", 3)
	s.request.Spec.Containers[0].StatusContext.ContainerID = id("app", 3).String()
	s.begun(t).missing("app").exited("app", 3, 143)
	wantDiff(t, "start", s.plan().Start, &crr.Start{Container: "app", Remove: []identity.ContainerID{id("app", 3)}})
	s.missing("app")
	wantDiff(t, "touch", s.plan().Start, &crr.Start{Container: "app", Touch: true})
}

func TestPlanTouchesAreBounded(t *testing.T) {
	t.Parallel()
	s := newFixture().begun(t).missing("app")
	touches := 0
	for range 200 {
		decision := s.plan()
		if decision.Start != nil {
			touches++
			s.observed.Actions["app"] = crr.ActionState{Done: s.now, Touches: touches}
		}
		s.stored(decision, time.Second)
	}
	if touches != 5 {
		t.Errorf("%d touches in 200 s, want 5", touches)
	}
}

// With EventedPLEG kubelet keeps the exited instance in its cache and its back-off with it. That shows in its
// status, and the request says so.
func TestPlanDetectsAKubeletThatKeepsItsBackoff(t *testing.T) {
	t.Parallel()
	s := newFixture().begun(t).missing("app").crashLoop("app", 3)
	s.observed.Actions["app"] = crr.ActionState{Done: s.now.Add(-time.Minute), Touches: 2}
	got := s.plan()
	wantWait(t, got)
	for _, want := range []string{"kubelet back-off until", "EventedPLEG"} {
		if message := got.Status.ContainerRecreateStates[0].Message; !strings.Contains(message, want) {
			t.Errorf("message %q does not contain %q", message, want)
		}
	}
}
