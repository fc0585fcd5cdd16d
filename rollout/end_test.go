package rollout_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

func TestFailurePolicy(t *testing.T) {
	t.Parallel()
	for policy, want := range map[v1alpha1.RolloutFailurePolicy]struct {
		started []string
		ended   bool
	}{"": {nil, true}, v1alpha1.RolloutFailureStop: {nil, true}, v1alpha1.RolloutFailureContinue: {[]string{"web-1"}, false}} {
		f := newFixture(3, func(s *v1alpha1.RestartRolloutSpec) { s.FailurePolicy = policy })
		f.look()
		f.fail("web-2")
		started := f.look()
		if !cmp.Equal(started, want.started) || (f.rollout.Status.CompletionTime != nil) != want.ended {
			t.Errorf("%q: started %v, %+v", policy, started, f.rollout.Status)
		}
		if !want.ended {
			f.restart("web-1")
			f.look()
			f.restart("web-0")
			f.look()
		}
		if status, reason := f.condition("Failed"); status != metav1.ConditionTrue || reason != v1alpha1.ReasonPodsFailed {
			t.Errorf("%q: Failed is %s, %s", policy, status, reason)
		}
		if failures := f.rollout.Status.Failures; len(failures) != 1 || failures[0].Pod != "web-2" || failures[0].Reason != "StopFailed" {
			t.Errorf("%q: %+v", policy, failures)
		}
	}
}

func TestRolloutEnds(t *testing.T) {
	t.Parallel()
	deadline := func(s *v1alpha1.RestartRolloutSpec) { s.ActiveDeadlineSeconds = new(int64(60)) }
	for name, tt := range map[string]struct {
		pods   int
		change func(*v1alpha1.RestartRolloutSpec)
		act    func(*fixture)
		kind   string
		reason string
	}{
		"no pods":                      {0, deadline, func(*fixture) {}, "Succeeded", "NoPods"},
		"no selector that can be read": {1, deadline, func(f *fixture) { f.observed.Unreadable = "it has 101 labels" }, "Failed", "TargetNotReadable"},
		"no workload":                  {1, deadline, func(f *fixture) { f.observed.TargetGone = true }, "Failed", "TargetNotFound"},
		"deadline": {2, deadline, func(f *fixture) {
			f.restart("web-1")
			f.now = f.now.Add(60 * time.Second)
		}, "Failed", "DeadlineExceeded"},
		"deadline while a restart is under way": {2, deadline, func(f *fixture) { f.now = f.now.Add(60 * time.Second) }, "Progressing", "DeadlineExceeded"},
		"before it":                             {2, deadline, func(f *fixture) { f.now = f.now.Add(59 * time.Second) }, "Progressing", "MaxUnavailable"},
		"no progress":                           {2, func(*v1alpha1.RestartRolloutSpec) {}, func(f *fixture) { f.now = f.now.Add(10 * time.Minute) }, "Progressing", "ProgressDeadlineExceeded"},
		"pods are deleted":                      {2, deadline, func(f *fixture) { f.observed.Pods = nil }, "Succeeded", "NoPods"},
		"paused for long": {2, func(s *v1alpha1.RestartRolloutSpec) { s.Paused = true }, func(f *fixture) { f.now = f.now.Add(time.Hour) },
			"Progressing", "Paused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(tt.pods, tt.change)
			f.look()
			tt.act(f)
			f.look()
			if _, reason := f.condition(tt.kind); reason != tt.reason {
				t.Errorf("%s is %s: %+v", tt.kind, reason, f.rollout.Status)
			}
			if ended := f.rollout.Status.CompletionTime != nil; ended != (tt.kind != "Progressing") {
				t.Errorf("ended: %v", ended)
			}
		})
	}
}

func TestPausedRolloutDoesNotMissItsProgressDeadline(t *testing.T) {
	t.Parallel()
	f := newFixture(2, func(s *v1alpha1.RestartRolloutSpec) { s.Paused = true })
	f.look()
	f.now = f.now.Add(time.Hour)
	f.look()
	f.rollout.Spec.Paused = false
	f.look()
	if status, reason := f.condition("Progressing"); status != metav1.ConditionTrue || reason != "MaxUnavailable" {
		t.Errorf("%s %s", status, reason)
	}
	if want := f.now.Add(10 * time.Minute); !f.last.Again.Equal(want) {
		t.Errorf("looks again at %s, want %s", f.last.Again, want)
	}
}

func TestTimeToLive(t *testing.T) {
	t.Parallel()
	f := newFixture(0, func(s *v1alpha1.RestartRolloutSpec) { s.TTLSecondsAfterFinished = new(int32(60)) })
	f.look()
	if f.last.Delete || !f.last.Again.Equal(start.Add(time.Minute)) {
		t.Errorf("%+v", f.last)
	}
	f.now = start.Add(59 * time.Second)
	if f.look(); f.last.Delete || !f.last.Again.Equal(start.Add(time.Minute)) {
		t.Errorf("%+v", f.last)
	}
	f.now = start.Add(time.Minute)
	if f.look(); !f.last.Delete {
		t.Error("not deleted")
	}
	f.rollout.Spec.TTLSecondsAfterFinished = nil
	if f.look(); f.last.Delete {
		t.Error("deleted without a time to live")
	}
}

// How a rollout has ended is written before it is deleted, so that those who wait for it learn it.
func TestARolloutWithoutTimeToLiveIsDeletedWhenItsEndHasBeenWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(0, func(s *v1alpha1.RestartRolloutSpec) { s.TTLSecondsAfterFinished = new(int32(0)) })
	if f.look(); f.last.Delete || f.last.Status.CompletionTime == nil || !f.last.Again.Equal(start) {
		t.Errorf("%+v", f.last)
	}
	if f.look(); !f.last.Delete {
		t.Error("not deleted")
	}
}

func TestRolloutEndsWhenThePodsAreAvailableAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(1)
	f.look()
	f.restart("web-0")
	setReady(f.pod("web-0"), false, f.now)
	if f.look(); f.rollout.Status.CompletionTime != nil {
		t.Error("ended while a restarted pod is not ready")
	}
	setReady(f.pod("web-0"), true, f.now)
	if f.look(); f.rollout.Status.CompletionTime == nil {
		t.Error("not ended")
	}
}

func TestRolloutEndsOnlyWhenTheLastPodHasBeenReadyForLongEnough(t *testing.T) {
	t.Parallel()
	f := newFixture(1, func(s *v1alpha1.RestartRolloutSpec) { s.MinReadySeconds = new(int32(20)) })
	f.look()
	f.restart("web-0")
	f.now = start.Add(19 * time.Second)
	if f.look(); f.rollout.Status.CompletionTime != nil || !f.last.Again.Equal(start.Add(20*time.Second)) {
		t.Errorf("ended %v before minReadySeconds have passed, again %s", f.rollout.Status.CompletionTime, f.last.Again)
	}
	f.now = start.Add(20 * time.Second)
	if f.look(); f.rollout.Status.CompletionTime == nil {
		t.Error("not ended")
	}
}

// The API server refuses a status whose texts are longer than the CRD allows, also in each later write.
func TestLongMessageOfAPodDoesNotPreventTheEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(1)
	f.look()
	f.fail("web-0")
	conditions := f.request("web-0").Status.Conditions
	for i := range conditions {
		conditions[i].Message = strings.Repeat("é", 5000)
	}
	f.look()
	if failures := f.rollout.Status.Failures; len(failures) != 1 || len(failures[0].Message) < 500 || len(failures[0].Message) > 1024 || !utf8.ValidString(failures[0].Message) {
		t.Errorf("%+v", failures)
	}
}
