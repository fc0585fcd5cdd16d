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

func TestJobWithoutNodesIsCompleteAndSaysWhy(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0, job())
	c.look()
	if s := c.job.Status; s.CompletionTime == nil || s.Message != "job has completed; no node is selected" || !meta.IsStatusConditionTrue(s.Conditions, "Complete") {
		t.Errorf("%+v", s)
	}
}

// The node named as an example is the same each time, so that the status is not written again and again.
func TestMessageOfAFailedJobNamesTheFirstNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, job(func(j *v1beta1.ImagePullJob) { j.Spec.Parallelism = nil }))
	for range 3 {
		c.look()
		c.answer(v1beta1.ImagePhaseFailed, "503")
	}
	c.nodes[0], c.nodes[2] = c.nodes[2], c.nodes[0]
	c.look()
	s := c.job.Status
	if s.Message != "job has completed; 3 of 3 nodes failed, for example node-0: 503" || strings.Join(s.FailedNodes, " ") != "node-0 node-1 node-2" || s.Active != 0 {
		t.Errorf("%+v", s)
	}
	if c := s.Conditions; len(c) != 2 || c[0].Type != "Complete" || c[0].Status != metav1.ConditionFalse || c[1].Reason != jobplan.ReasonPullFailed || "job has completed; "+c[1].Message != s.Message || !c[1].LastTransitionTime.Time.Equal(now) {
		t.Errorf("%+v", c)
	}
}

// The job looks again at the earliest of what may end without a change of a node.
func TestJobLooksAgainAtItsDeadline(t *testing.T) {
	t.Parallel()
	for deadline, want := range map[int64]time.Duration{60: time.Minute, 3600: 10 * time.Minute} {
		c := newCluster(t, 1, job(func(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy.ActiveDeadlineSeconds = &deadline }))
		c.look()
		c.now = now.Add(10 * time.Second)
		if d := c.look(); !d.Again.Equal(now.Add(want)) {
			t.Errorf("deadline %d s: again at %s", deadline, d.Again)
		}
		c.now = now.Add(time.Duration(deadline)*time.Second - time.Second)
		c.answer(v1beta1.ImagePhasePulling, "")
		if d := c.look(); d.Status.CompletionTime != nil {
			t.Errorf("deadline %d s: ended before it", deadline)
		}
	}
}

// Every node is counted at the end, as with OpenKruise: those that pull, and those that have not begun, have failed.
func TestNodesThatHaveNotEndedAtTheDeadlineHaveFailed(t *testing.T) {
	t.Parallel()
	deadline := func(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy.ActiveDeadlineSeconds = new(int64(60)) }
	c := newCluster(t, 5, job(deadline))
	c.look()
	c.answer(v1beta1.ImagePhaseSucceeded, "")
	c.look()
	c.answer(v1beta1.ImagePhasePulling, "")
	c.now = now.Add(time.Minute)
	c.look()
	s := c.job.Status
	if s.Desired != 5 || s.Succeeded != 2 || s.Failed != 3 || s.Active != 0 || strings.Join(s.FailedNodes, " ") != "node-2 node-3 node-4" || s.Message != "job exceeds activeDeadlineSeconds; 2 of 5 nodes have not ended, for example node-2: Pulling; 1 of 5 nodes were not begun within parallelism" {
		t.Errorf("%+v", s)
	}
	c = newCluster(t, 3, job(deadline))
	c.look()
	c.answer(v1beta1.ImagePhaseFailed, "404")
	c.now = now.Add(time.Minute)
	c.look()
	if s := c.job.Status; s.Failed != 3 || strings.Join(s.FailedNodes, " ") != "node-0 node-1 node-2" || s.Message != "job exceeds activeDeadlineSeconds; 2 of 3 nodes failed, for example node-0: 404; 1 of 3 nodes were not begun within parallelism" {
		t.Errorf("%+v", s)
	}
}

// The last error of a node that goes on trying is what tells why the job has not ended in time.
func TestJobAtItsDeadlineSaysWhatNodesReport(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, job(func(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy.ActiveDeadlineSeconds = new(int64(60)) }))
	c.look()
	c.answer(v1beta1.ImagePhaseWaiting, "attempt 2 of 4 failed: no such image; the next attempt is in 4s"+strings.Repeat("!", 1000))
	c.now = now.Add(time.Minute)
	c.look()
	s := c.job.Status
	const want = "; 2 of 2 nodes have not ended, for example node-0: attempt 2 of 4 failed: no such image; the next attempt is in 4s"
	if !strings.HasPrefix(s.Message, "job exceeds activeDeadlineSeconds"+want) || len(s.Message) > 600 {
		t.Errorf("%q", s.Message)
	}
	failed := meta.FindStatusCondition(s.Conditions, v1beta1.ConditionPullFailed)
	if !strings.HasPrefix(failed.Message, "0 of 2 nodes have the image after activeDeadlineSeconds 60"+want) || len(failed.Message) > 600 {
		t.Errorf("%q", failed.Message)
	}
}

// The deadline does not undo what has been pulled just then.
func TestDeadlineOfAJobThatIsDoneIsNone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, job(func(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy.ActiveDeadlineSeconds = new(int64(60)) }))
	c.look()
	c.answer(v1beta1.ImagePhaseSucceeded, "")
	c.now = now.Add(time.Hour)
	if c.look(); !meta.IsStatusConditionTrue(c.job.Status.Conditions, "Complete") {
		t.Errorf("%+v", c.job.Status)
	}
}

// A node that has begun and then falls silent is waited for until the deadline of the pull and ten minutes more; one without
// a deadline goes on.
func TestNodeThatFallsSilentWhilePulling(t *testing.T) {
	t.Parallel()
	silent := func(deadline *int64) *cluster {
		c := newCluster(t, 1, job())
		c.look()
		c.nodes[0].Spec.Images["game"].Tags[0].Namespaces[0].PullPolicy.ActiveDeadlineSeconds = deadline
		c.answer(v1beta1.ImagePhasePulling, "")
		return c
	}
	c := silent(new(int64(300)))
	if d := c.look(); d.Status.Active != 1 || !d.Again.Equal(now.Add(15*time.Minute)) {
		t.Errorf("%+v", d)
	}
	c.now = now.Add(15 * time.Minute)
	if c.look(); c.job.Status.Failed != 1 || !strings.Contains(c.job.Status.Message, "pulling exceeds the activeDeadlineSeconds") {
		t.Errorf("%+v", c.job.Status)
	}
	c = silent(nil)
	c.now = now.Add(24 * time.Hour)
	if c.look(); c.job.Status.Failed != 0 || c.job.Status.Active != 1 {
		t.Errorf("%+v", c.job.Status)
	}
}

func TestListWithoutTimeToLiveStays(t *testing.T) {
	t.Parallel()
	list := &v1beta1.ImageListPullJob{}
	list.Spec.Images = []string{"a", "b"}
	ended := metav1.NewTime(now)
	jobs := map[string]*v1beta1.ImagePullJob{
		"a": {Status: v1beta1.ImagePullJobStatus{CompletionTime: &ended, Desired: 1, Succeeded: 1}},
		"b": {Status: v1beta1.ImagePullJobStatus{CompletionTime: &ended, Desired: 2, Succeeded: 2}},
	}
	status, remove, again := jobplan.List(list, jobs, now)
	if remove || !again.IsZero() || status.Succeeded != 2 || !meta.IsStatusConditionTrue(status.Conditions, "Complete") || status.Conditions[0].Message != "all images are pulled" || !status.StartTime.Time.Equal(now) {
		t.Errorf("%t, %s, %+v", remove, again, status)
	}
	list.Status = status
	if _, remove, again := jobplan.List(list, nil, now.Add(1000*time.Hour)); remove || !again.IsZero() {
		t.Errorf("removed %t, again at %s", remove, again)
	}
	list.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(60))
	if _, remove, again := jobplan.List(list, nil, now.Add(59*time.Second)); remove || !again.Equal(now.Add(time.Minute)) {
		t.Errorf("removed %t, again at %s", remove, again)
	}
}

// A job that some nodes have not answered, or whose deadline has passed, has not succeeded although none has failed.
func TestListCountsAJobAsSucceededOnlyIfAllItsNodesHaveTheImage(t *testing.T) {
	t.Parallel()
	ended := metav1.NewTime(now)
	for name, status := range map[string]v1beta1.ImagePullJobStatus{
		"a node less": {Desired: 2, Succeeded: 1},
		"one failed":  {Desired: 1, Succeeded: 1, Failed: 1},
		"its verdict": {Desired: 1, Succeeded: 1, Conditions: []metav1.Condition{{Type: "Failed", Status: metav1.ConditionTrue}}},
	} {
		status.CompletionTime = &ended
		list := &v1beta1.ImageListPullJob{}
		list.Spec.Images = []string{"a"}
		got, _, _ := jobplan.List(list, map[string]*v1beta1.ImagePullJob{"a": {Status: status}}, now)
		if got.Succeeded != 0 || len(got.FailedImageStatuses) != 1 || got.Conditions[1].Message != "1 of 1 images failed: a" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A job says in OpenKruise's words how far it is, and then which nodes have failed.
func TestMessageOfARunningJob(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, job())
	c.look()
	c.answer(v1beta1.ImagePhaseFailed, "404")
	c.look()
	if s := c.job.Status; s.CompletionTime != nil || s.Message != "job is running, progress 66.7%; 2 of 3 nodes failed, for example node-0: 404" {
		t.Errorf("%+v", s)
	}
	c = newCluster(t, 1, job())
	if c.look(); c.job.Status.Message != "job is running, progress 0.0%" {
		t.Errorf("at the beginning: %q", c.job.Status.Message)
	}
	c.answer(v1beta1.ImagePhaseSucceeded, "")
	if c.look(); c.job.Status.Message != "job has completed" || c.job.Status.Conditions[0].Message != "all nodes have the image" {
		t.Errorf("at the end: %q", c.job.Status.Message)
	}
}

// The API server lists nodes in any order. Which of them begin must not depend on it: the decision is made again after a conflict.
func TestNodesBeginInTheOrderOfTheirNames(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4, job())
	c.nodes[0], c.nodes[3] = c.nodes[3], c.nodes[0]
	if d := c.look(); strings.Join(d.Start, " ") != "node-0 node-1" || strings.Join(d.Spare, " ") != "node-2 node-3" {
		t.Errorf("%q begin, %q are left", d.Start, d.Spare)
	}
}

// OpenKruise's CRD has no conditions: the API server drops them.
func TestListWithAMalformedImageFailsUnderOpenKruisesCRD(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, job(func(j *v1beta1.ImagePullJob) { j.Spec.Image = "a b" }))
	c.look()
	c.job.Status.Conditions = nil
	list := &v1beta1.ImageListPullJob{}
	list.Spec.Images = []string{"a b"}
	status, _, _ := jobplan.List(list, map[string]*v1beta1.ImagePullJob{"a b": c.job}, now)
	if status.Succeeded != 0 || len(status.FailedImageStatuses) != 1 || status.FailedImageStatuses[0].Message != c.job.Status.Message || status.CompletionTime == nil {
		t.Errorf("%+v", status)
	}
}
