package crr_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/record"
)

// store returns the status as stored under OpenKruise's CRD, which has no container IDs in states, with the daemon's
// record of them.
func store(request *crr.Request, status crr.Status) *crr.Request {
	stored := request.DeepCopy()
	stored.Status = prune(status)
	stored = record.Apply(stored)
	if value, missing := record.Missing(stored, status); missing {
		metav1.SetMetaDataAnnotation(&stored.ObjectMeta, v1beta1.AnnotationInstances, value)
	}
	return record.Apply(stored)
}

func prune(status crr.Status) crr.Status {
	pruned := *status.DeepCopy()
	for i := range pruned.ContainerRecreateStates {
		pruned.ContainerRecreateStates[i].ContainerID = ""
		pruned.ContainerRecreateStates[i].StopBegan = nil
	}
	return pruned
}

func (s *fixture) pruned(decision crr.Decision, later time.Duration) *fixture {
	s.request = store(s.request, decision.Status)
	s.now = s.now.Add(later)
	return s
}

func TestForcedRequestStopsOneInstanceUnderOpenKruisesCRD(t *testing.T) {
	t.Parallel()
	s := forced(newFixture())
	first := s.plan()
	wantDiff(t, "stop", first.Stop.ID, id("app", 0))
	s.pruned(first, time.Second).runs("app", 1)
	s.observed.Actions = nil // kill -9 between the stop and whatever follows it
	for range 20 {
		next := s.plan()
		wantWait(t, next)
		s.pruned(next, time.Second)
	}
	s.ready("app", 1)
	wantOutcome(t, s.plan(), crr.ReasonSucceeded)
}

// The second of two forced requests is admitted while the first instance runs, and stops the instance that it finds.
func TestForcedRequestRecordsTheInstanceItFindsUnderOpenKruisesCRD(t *testing.T) {
	t.Parallel()
	s := forced(newFixture().runs("app", 1))
	first := s.plan()
	wantDiff(t, "stop", first.Stop.ID, id("app", 1))
	s.pruned(first, time.Second).runs("app", 2).ready("app", 2)
	s.observed.Actions = nil
	wantOutcome(t, s.plan(), crr.ReasonSucceeded)
}

// Removing its instances would take a crashing new container out of kubelet's back-off again and again.
func TestCrashOfTheNewInstanceKeepsItsBackoffUnderOpenKruisesCRD(t *testing.T) {
	t.Parallel()
	s := newFixture()
	s.pruned(s.plan(), time.Second).exited("app", 0, 143).runs("app", 1).ready("app", 1).exited("app", 1, 1).crashLoop("app", 1)
	s.observed.Actions = nil
	for range 5 {
		next := s.plan()
		wantWait(t, next)
		s.pruned(next, time.Minute)
	}
}

func TestContainerIsPendingUntilItsStopHasReturned(t *testing.T) {
	t.Parallel()
	s := newFixture()
	first := s.plan()
	wantDiff(t, "before the stop", phases(first.Status), map[string]string{"app": "Pending"})
	s.stored(first, time.Second).exited("app", 0, 143)
	s.observed.Actions["app"] = crr.ActionState{Running: true}
	during := s.plan()
	wantDiff(t, "while the stop call lasts", phases(during.Status), map[string]string{"app": "Pending"})
	s.observed.Actions["app"] = crr.ActionState{Done: s.now}
	s.now = s.now.Add(time.Minute)
	after := s.plan().Status.ContainerRecreateStates[0]
	if after.Phase != v1beta1.ContainerRecreateRequestRecreating || !after.IsKilled {
		t.Errorf("after the stop: %+v, want Recreating and isKilled", after)
	}
}

// OpenKruise's clients look for these states after a deadline.
func TestDeadlineLeavesStatesUnderOpenKruisesCRD(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(*fixture, crr.Decision){
		"the daemon": func(s *fixture, first crr.Decision) { s.pruned(first, 3*time.Second) },
		"the sidecar": func(s *fixture, first crr.Decision) { // may not write the record
			s.request.Status, s.now, s.observed.DropsIDs = prune(first.Status), s.now.Add(3*time.Second), true
			s.request = record.Begun(s.request)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			deadline := int64(3)
			s := newFixture("app", "log")
			s.request.Spec.ActiveDeadlineSeconds = &deadline
			store(s, s.plan())
			s.observed.Actions["app"] = crr.ActionState{Running: true} // a preStop hook
			ended := s.plan()
			wantDiff(t, "phase", ended.Status.Phase, v1beta1.ContainerRecreateRequestCompleted)
			wantDiff(t, "states", prune(ended.Status).ContainerRecreateStates, []v1beta1.ContainerRecreateRequestRecreateState{
				{Name: "app", Phase: v1beta1.ContainerRecreateRequestPending}, {Name: "log", Phase: v1beta1.ContainerRecreateRequestPending},
			})
		})
	}
}

// Only at the deadline states are kept, and only the states of containers that are being stopped have no message.
func TestOtherEndsMarkContainersUnderOpenKruisesCRD(t *testing.T) {
	t.Parallel()
	s := newFixture("app", "log")
	s.request.Spec.ActiveDeadlineSeconds = new(int64(60))
	s.pruned(s.plan(), time.Second).exited("app", 0, 143)
	s.observed.Actions["app"] = crr.ActionState{Done: s.now}
	s.pruned(s.plan(), time.Hour)
	late := s.plan()
	s.observed.Pod = nil
	gone := s.plan()
	var got []string
	for _, state := range append(late.Status.ContainerRecreateStates, gone.Status.ContainerRecreateStates...) {
		got = append(got, string(state.Phase)+" "+state.Message)
	}
	wantDiff(t, "states", got, []string{
		"Recreating stopped; waiting for kubelet to start it", "Pending ",
		"Failed pod has gone: stopped; waiting for kubelet to start it", "Failed pod has gone: stopping",
	})
}
