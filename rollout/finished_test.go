package rollout_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/rollout"
)

// restored is the rollout as it is after a backup of its cluster was restored: new, and without its status.
func (f *fixture) restored() *fixture {
	again := &fixture{now: f.now.Add(time.Hour), rollout: f.rollout.DeepCopy(), observed: f.observed}
	again.observed.Requests = nil // they belong to an object with another UID
	again.rollout.UID, again.rollout.CreationTimestamp = "restored", metav1.NewTime(again.now)
	if f.rollout.Status.CompletionTime != nil {
		again.rollout.Annotations[v1alpha1.AnnotationFinished] = rollout.FinishedAnnotation(f.rollout.Name, &f.rollout.Status)
	}
	again.rollout.Status = v1alpha1.RestartRolloutStatus{}
	return again
}

func TestAFinishedRolloutThatIsRestoredWithoutItsStatusRestartsNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		act                 func(*fixture)
		succeeded, finished metav1.ConditionStatus
		reason              string
	}{
		"succeeded": {func(f *fixture) { f.restart("web-0") }, metav1.ConditionTrue, metav1.ConditionTrue, v1alpha1.ReasonRestarted},
		"failed":    {func(f *fixture) { f.fail("web-0") }, metav1.ConditionFalse, metav1.ConditionTrue, v1alpha1.ReasonPodsFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(1)
			f.look()
			tt.act(f)
			f.look()
			again := f.restored()
			if started := again.look(); started != nil || !again.rollout.Status.CompletionTime.Time.Equal(f.rollout.Status.CompletionTime.Time) {
				t.Errorf("started %v: %+v", started, again.rollout.Status)
			}
			if status, reason := again.condition("Succeeded"); status != tt.succeeded || reason != tt.reason {
				t.Errorf("Succeeded is %s, %s", status, reason)
			}
			if status, _ := again.condition("Finished"); status != tt.finished {
				t.Errorf("Finished is %s", status)
			}
			if started := again.look(); started != nil {
				t.Errorf("later: started %v", started)
			}
		})
	}
}

func TestARolloutThatHadNotFinishedIsDoneAgainAfterItWasRestored(t *testing.T) {
	t.Parallel()
	f := newFixture(2)
	f.look()
	if started := f.restored().look(); len(started) != 1 {
		t.Errorf("started %v", started)
	}
}

func TestRecordOfTheEndIsOnlyBelieved(t *testing.T) {
	t.Parallel()
	ended := `"completionTime":"2026-11-22T10:00:00Z","succeeded":false,`
	for name, tt := range map[string]struct {
		value  string
		reason string // of the condition Failed; empty if the rollout is carried out
	}{
		"if it has the name":         {`{"name":"web",` + ended + `"reason":"DeadlineExceeded"}`, v1alpha1.ReasonDeadlineExceeded},
		"with a reason that exists":  {`{"name":"web",` + ended + `"reason":"no reason\n"}`, v1alpha1.ReasonPodsFailed},
		"not on a copy":              {`{"name":"another",` + ended + `"reason":"DeadlineExceeded"}`, ""},
		"not without a time":         {`{"name":"web","reason":"DeadlineExceeded"}`, ""},
		"not if it cannot be parsed": {`{"name":"web"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(1)
			f.rollout.Annotations[v1alpha1.AnnotationFinished] = tt.value
			started := f.look()
			if _, reason := f.condition("Failed"); tt.reason != "" && (started != nil || reason != tt.reason) || tt.reason == "" && len(started) != 1 {
				t.Errorf("started %v, Failed is %s", started, reason)
			}
		})
	}
}

func TestRestoredRolloutIsDeletedAtItsTTL(t *testing.T) {
	t.Parallel()
	f := newFixture(0, func(s *v1alpha1.RestartRolloutSpec) { s.TTLSecondsAfterFinished = new(int32(60)) })
	f.look()
	again := f.restored()
	again.look()
	if again.look(); !again.last.Delete {
		t.Errorf("not deleted: %+v", again.last)
	}
}

// Whoever waits for a condition needs it before the end.
func TestConditionsOfTheEndExistFromTheStart(t *testing.T) {
	t.Parallel()
	f := newFixture(1)
	f.look()
	for kind, want := range map[string]metav1.ConditionStatus{"Finished": "False", "Succeeded": "Unknown", "Failed": "Unknown", "Progressing": "True"} {
		if status, _ := f.condition(kind); status != want {
			t.Errorf("condition %s is %q, want %s", kind, status, want)
		}
	}
}

// As for a Deployment: Progressing is False if somebody has to act.
func TestProgressingSaysHowTheRolloutHasEnded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		act    func(*fixture)
		status metav1.ConditionStatus
		reason string
	}{
		"success":     {func(f *fixture) { f.restart("web-0") }, metav1.ConditionTrue, v1alpha1.ReasonCompleted},
		"failed pod":  {func(f *fixture) { f.fail("web-0") }, metav1.ConditionFalse, v1alpha1.ReasonPodsFailed},
		"no workload": {func(f *fixture) { f.observed.TargetGone = true }, metav1.ConditionFalse, v1alpha1.ReasonTargetNotFound},
	} {
		f := newFixture(1)
		f.look()
		tt.act(f)
		f.look()
		if status, reason := f.condition("Progressing"); status != tt.status || reason != tt.reason {
			t.Errorf("%s: Progressing is %s, %s", name, status, reason)
		}
		if status, _ := f.condition("Finished"); status != metav1.ConditionTrue {
			t.Errorf("%s: Finished is %s", name, status)
		}
	}
}

// As for a Job: a rollout that waits for an approval does not end before it has begun.
func TestActiveDeadlineDoesNotPassWhileARolloutIsPaused(t *testing.T) {
	t.Parallel()
	f := newFixture(2, func(s *v1alpha1.RestartRolloutSpec) { s.Paused, s.ActiveDeadlineSeconds = true, new(int64(60)) })
	f.look()
	f.now = f.now.Add(time.Hour)
	if f.look(); f.rollout.Status.CompletionTime != nil || f.rollout.Status.StartTime != nil {
		t.Fatalf("%+v", f.rollout.Status)
	}
	f.rollout.Spec.Paused = false
	if started := f.look(); len(started) != 1 || !f.rollout.Status.StartTime.Time.Equal(f.now) {
		t.Fatalf("started %v: %+v", started, f.rollout.Status)
	}
	f.restart("web-1")
	f.now = f.now.Add(time.Minute)
	f.look()
	if _, reason := f.condition("Failed"); reason != v1alpha1.ReasonDeadlineExceeded {
		t.Errorf("%+v", f.rollout.Status)
	}
}
