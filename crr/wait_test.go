package crr_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
)

func queued(name string, created time.Duration, changes ...func(*crr.Request)) *crr.Request {
	request := &crr.Request{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon.Add(created))}}
	for _, change := range changes {
		change(request)
	}
	return request
}

func TestWaitNamesTheRequestInFront(t *testing.T) {
	t.Parallel()
	request := queued("second", 0, func(r *crr.Request) { r.Spec.ActiveDeadlineSeconds = new(int64(60)) })
	decision := crr.Wait(request, queued("first", 0), crr.Options{}, time.Hour, noon.Add(-time.Hour))
	wantDiff(t, "phase", decision.Status.Phase, v1beta1.ContainerRecreateRequestPending)
	wantDiff(t, "message", decision.Status.Message, "waiting for ContainerRecreateRequest first of the same pod")
	wantDiff(t, "woken at the deadline on our clock, which is an hour behind", decision.Again.Time, noon.Add(time.Minute-time.Hour))
}

// An action that was decided before a wait for a slot or a hook must be checked again.
func TestMayAct(t *testing.T) {
	t.Parallel()
	limited := func(r *crr.Request) { r.Spec.ActiveDeadlineSeconds = new(int64(60)) }
	for name, tt := range map[string]struct {
		request *crr.Request
		offset  time.Duration
		want    string // in the error; empty: it may
	}{
		"active":                       {queued("r", 0), 0, ""},
		"within its deadline":          {queued("r", -59*time.Second, limited), 0, ""},
		"gone":                         {nil, 0, "deleted"},
		"being deleted":                {queued("r", 0, func(r *crr.Request) { r.DeletionTimestamp = &metav1.Time{Time: noon} }), 0, "being deleted"},
		"ended":                        {queued("r", 0, func(r *crr.Request) { r.Status.Phase = v1beta1.ContainerRecreateRequestCompleted }), 0, "ended"},
		"past its deadline":            {queued("r", -time.Minute, limited), 0, "activeDeadlineSeconds"},
		"past it by the API's clock":   {queued("r", 0, limited), time.Minute, "activeDeadlineSeconds"},
		"within it by the API's clock": {queued("r", -time.Hour, limited), -time.Hour, ""},
	} {
		err := crr.MayAct(tt.request, tt.offset, noon)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// `kubectl describe` shows who has taken the request, and for which generation of it.
func TestDaemonSaysThatItHasTakenTheRequest(t *testing.T) {
	t.Parallel()
	accepted := meta.FindStatusCondition(newFixture().plan().Status.Conditions, v1beta1.ConditionAccepted)
	wantDiff(t, "condition", accepted, &metav1.Condition{
		Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted", Message: "refit-daemon has taken the request",
		ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(noon),
	})
}

// The manager has a minute since the request was taken, and not since the daemon was started.
func TestNextDaemonGivesTheManagerNoOtherMinute(t *testing.T) {
	t.Parallel()
	s := newFixture()
	s.request.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(20))
	s.observed.Pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}}
	s.stored(s.plan(), time.Minute)
	s.observed.TakenAt = s.now
	wantOutcome(t, s.plan(), crr.ReasonDrainNotAcquired)
}

// States are identified by name: they are in spec order, and the state of another container is dropped.
func TestStatesAreInTheOrderOfTheContainers(t *testing.T) {
	t.Parallel()
	s := newFixture("app", "log")
	s.request.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{
		{Name: "gone", Phase: v1beta1.ContainerRecreateRequestFailed}, {Name: "log", Phase: v1beta1.ContainerRecreateRequestSucceeded},
	}
	decision := s.plan()
	var got []string
	for _, state := range decision.Status.ContainerRecreateStates {
		got = append(got, state.Name+" "+string(state.Phase))
	}
	wantDiff(t, "states", got, []string{"app Pending", "log Succeeded"})
	wantDiff(t, "stop", decision.Stop.Container, "app")
}

// An end that has been reached is no matter of progress: it is told at once, also while the other container is waited for.
func TestContainerThatHasSucceededIsToldAtOnce(t *testing.T) {
	t.Parallel()
	s := newFixture("app", "log").begun(t).exited("app", 0, 143).begun(t).exited("log", 0, 143)
	s.observed.Actions["app"], s.observed.Actions["log"] = crr.ActionState{Done: s.now}, crr.ActionState{Done: s.now}
	s.stored(s.plan(), 20*time.Second).stored(s.plan(), 0)
	s.observed.Actions["log"] = crr.ActionState{Done: s.now}
	s.runs("app", 1).ready("app", 1)
	wantDiff(t, "phases", phases(s.plan().Status), map[string]string{"app": "Succeeded", "log": "Recreating"})
}

// A stop that the runtime goes on with is no end yet, and one whose instance has no state that is known has to be made.
func TestInstanceThatMayStillRun(t *testing.T) {
	t.Parallel()
	s := jobDone(func(*corev1.Pod) {}).begun(t).exited("log", 0, 143)
	s.observed.Actions["log"] = crr.ActionState{Running: true}
	wantWait(t, s.plan())

	s = newFixture()
	s.observed.Instances["app"][0].State = identity.StateUnknown
	wantDiff(t, "stop", s.plan().Stop, &crr.Stop{Container: "app", ID: id("app", 0), Grace: 30 * time.Second})
}
