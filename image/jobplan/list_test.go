package jobplan_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/jobplan"
)

// listOf is a list of images, and the jobs that it has made.
func listOf(kind v1beta1.CompletionPolicyType, jobs map[string]*v1beta1.ImagePullJob, images ...string) v1beta1.ImageListPullJobStatus {
	list := &v1beta1.ImageListPullJob{}
	list.Spec.Images, list.Spec.CompletionPolicy.Type = images, kind
	status, _, _ := jobplan.List(list, jobs, now)
	return status
}

func TestAListCountsItsJobs(t *testing.T) {
	t.Parallel()
	ended := metav1.NewTime(now)
	ofKind := func(kind v1beta1.CompletionPolicyType, status v1beta1.ImagePullJobStatus) *v1beta1.ImagePullJob {
		j := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Name: "job"}, Status: status}
		j.Spec.CompletionPolicy.Type = kind
		return j
	}
	pulled := v1beta1.ImagePullJobStatus{StartTime: &ended, CompletionTime: &ended, Desired: 1, Succeeded: 1}
	open := v1beta1.ImagePullJobStatus{StartTime: &ended, Desired: 2, Succeeded: 1, Failed: 1}
	failed := v1beta1.ImagePullJobStatus{StartTime: &ended, CompletionTime: &ended, Desired: 1, Failed: 1, Message: "404"}
	for name, tt := range map[string]struct {
		kind                                 v1beta1.CompletionPolicyType
		jobs                                 map[string]*v1beta1.ImagePullJob
		active, completed, succeeded, failed int
		ends                                 bool
	}{
		"none has been made":                    {"", nil, 0, 0, 0, 0, false},
		"one runs":                              {"", map[string]*v1beta1.ImagePullJob{"a": ofKind("", open)}, 1, 0, 0, 0, false},
		"one has ended":                         {"", map[string]*v1beta1.ImagePullJob{"a": ofKind("", pulled), "b": ofKind("", open)}, 1, 1, 1, 0, false},
		"all have ended":                        {"", map[string]*v1beta1.ImagePullJob{"a": ofKind("", pulled), "b": ofKind("", failed)}, 0, 2, 1, 1, true},
		"of another image":                      {"", map[string]*v1beta1.ImagePullJob{"c": ofKind("", pulled)}, 0, 0, 0, 0, false},
		"jobs that never complete have no more": {v1beta1.CompletionNever, map[string]*v1beta1.ImagePullJob{"a": ofKind(v1beta1.CompletionNever, open), "b": ofKind(v1beta1.CompletionNever, pulled)}, 0, 2, 1, 1, false},
		"one that never completes goes on": {v1beta1.CompletionNever, map[string]*v1beta1.ImagePullJob{
			"a": ofKind(v1beta1.CompletionNever, v1beta1.ImagePullJobStatus{StartTime: &ended, Desired: 3, Succeeded: 2}),
		}, 1, 0, 0, 0, false},
		"one that never completes has not begun": {v1beta1.CompletionNever, map[string]*v1beta1.ImagePullJob{"a": ofKind(v1beta1.CompletionNever, v1beta1.ImagePullJobStatus{})}, 1, 0, 0, 0, false},
	} {
		s := listOf(tt.kind, tt.jobs, "a", "b")
		if s.Desired != 2 || int(s.Active) != tt.active || int(s.Completed) != tt.completed || int(s.Succeeded) != tt.succeeded || len(s.FailedImageStatuses) != tt.failed ||
			(s.CompletionTime != nil) != tt.ends || (len(s.Conditions) > 0) != tt.ends {
			t.Errorf("%s: %+v", name, s)
		}
	}
	s := listOf("", map[string]*v1beta1.ImagePullJob{"a": ofKind("", failed), "b": ofKind("", failed)}, "b", "a")
	if got := s.FailedImageStatuses[0]; got.Name != "b" || got.ImagePullJob != "job" || got.Message != "404" {
		t.Errorf("%+v", got)
	}
	if c := s.Conditions[1]; c.Type != v1beta1.ConditionPullFailed || c.Status != metav1.ConditionTrue || c.Reason != jobplan.ReasonPullFailed || c.Message != "2 of 2 images failed: b, a" {
		t.Errorf("%+v", c)
	}
}

// A job or a list begins at the time of its first reconciliation, and is not evaluated again after its end.
func TestTimesOfAJobStay(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, job())
	c.look()
	c.now = now.Add(time.Minute)
	c.look()
	if got := c.job.Status.StartTime; !got.Time.Equal(now) {
		t.Errorf("begun at %s", got)
	}
	c.answer(v1beta1.ImagePhaseSucceeded, "")
	c.look()
	c.now = now.Add(1000 * time.Hour)
	if d := c.look(); d.Delete || !d.Again.IsZero() || !d.Status.CompletionTime.Time.Equal(now.Add(time.Minute)) {
		t.Errorf("without a time to live: %+v", d)
	}
	list := &v1beta1.ImageListPullJob{}
	list.Spec.Images, list.Spec.CompletionPolicy.TTLSecondsAfterFinished = []string{"a"}, new(int32(60))
	list.Status.StartTime = &metav1.Time{Time: now}
	if status, _, _ := jobplan.List(list, nil, now.Add(time.Hour)); !status.StartTime.Time.Equal(now) {
		t.Errorf("list begun at %s", status.StartTime)
	}
	list.Status.CompletionTime = &metav1.Time{Time: now}
	if _, remove, _ := jobplan.List(list, nil, now.Add(time.Minute)); !remove {
		t.Error("a list is not removed when its time to live is over")
	}
}

// A deadline is for jobs that complete: one that never does pulls on nodes that come later.
func TestAJobThatNeverCompletesHasNoDeadline(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0, job(func(j *v1beta1.ImagePullJob) {
		j.Spec.CompletionPolicy.Type, j.Spec.CompletionPolicy.ActiveDeadlineSeconds = v1beta1.CompletionNever, new(int64(60))
	}))
	c.look()
	c.now = now.Add(time.Hour)
	d := c.look()
	if d.Status.CompletionTime != nil || !d.Again.IsZero() || d.Status.Message != "job is running, no progress; no node is selected" {
		t.Errorf("%+v", d)
	}
	c = newCluster(t, 1, c.job)
	c.look()
	c.answer(v1beta1.ImagePhaseFailed, "404")
	if d := c.look(); d.Status.CompletionTime != nil || !strings.Contains(d.Status.Message, "progress 100.0%; 1 of 1 nodes failed, for example node-0: 404") || len(d.Status.Conditions) > 0 {
		t.Errorf("%+v", d.Status)
	}
}

// Its conditions are those that kubectl wait knows of a Job.
func TestConditionsOfAJobThatHasExceededItsDeadline(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, job(func(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy.ActiveDeadlineSeconds = new(int64(60)) }))
	c.look()
	c.now = now.Add(time.Minute)
	c.look()
	s := c.job.Status
	complete, failed := meta.FindStatusCondition(s.Conditions, v1beta1.ConditionPullComplete), meta.FindStatusCondition(s.Conditions, v1beta1.ConditionPullFailed)
	if complete.Status != metav1.ConditionFalse || failed.Status != metav1.ConditionTrue || complete.Reason != failed.Reason || !strings.HasPrefix(failed.Message, "0 of 2 nodes have the image after activeDeadlineSeconds 60;") {
		t.Errorf("%+v", s.Conditions)
	}
}
