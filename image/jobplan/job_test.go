package jobplan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/entry"
	"github.com/refit-project/refit/image/jobplan"
)

var now = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

func job(change ...func(*v1beta1.ImagePullJob)) *v1beta1.ImagePullJob {
	j := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "j", UID: "job"}}
	j.Spec.Image = "game:v1"
	j.Spec.Parallelism = new(intstr.FromInt32(2))
	for _, c := range change {
		c(j)
	}
	return j
}

// cluster is a set of nodes that report when the test says so.
type cluster struct {
	t     *testing.T
	nodes []*v1beta1.NodeImage
	job   *v1beta1.ImagePullJob
	now   time.Time
}

func newCluster(t *testing.T, n int, j *v1beta1.ImagePullJob) *cluster {
	t.Helper()
	c := &cluster{t: t, job: j, now: now}
	for i := range n {
		c.nodes = append(c.nodes, &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)}})
	}
	return c
}

// look plans and carries out what is planned.
func (c *cluster) look() jobplan.Decision {
	d := jobplan.Job(c.job, c.nodes, c.now)
	for _, name := range d.Start {
		for _, node := range c.nodes {
			if node.Name == name && !entry.Request(node, c.job, nil, c.now) {
				c.t.Fatal("no room")
			}
		}
	}
	c.job.Status = d.Status
	return d
}

// answer has each node that pulls say how it ended.
func (c *cluster) answer(phase v1beta1.ImagePullPhase, message string) {
	for _, node := range c.nodes {
		states := map[image.Target]image.State{}
		for _, w := range image.Wanted(node.Spec) {
			s, _ := image.Known(&node.Status, w)
			if s.Version != w.Version || !s.Ended() {
				s = s.Next(w)
				s.Phase, s.Message, s.Started, s.Completed = phase, message, c.now, c.now
			}
			states[w.Target] = s
		}
		node.Status = image.Status(node.Spec, states)
	}
}

func (c *cluster) prune(found ...*v1beta1.ImagePullJob) (entries int) {
	for _, node := range c.nodes {
		entry.Prune(node, func(o corev1.ObjectReference) *v1beta1.ImagePullJob {
			for _, j := range found {
				if j.UID == o.UID {
					return j
				}
			}
			return nil
		}, c.now)
		entries += len(image.Wanted(node.Spec))
	}
	return entries
}

func TestJobPullsOnAllNodesAFewAtATime(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, job())
	for round, want := range []int{2, 2, 1, 0} {
		if d := c.look(); len(d.Start) != want || int(d.Status.Succeeded) != min(2*round, 5) || d.Status.Desired != 5 {
			t.Fatalf("round %d: starts %q, %+v", round, d.Start, d.Status)
		}
		if d := c.look(); len(d.Start) != 0 && d.Status.CompletionTime == nil {
			t.Fatalf("round %d: starts %q beyond parallelism", round, d.Start)
		}
		c.answer(v1beta1.ImagePhaseSucceeded, "")
	}
	s := c.job.Status
	if s.CompletionTime == nil || s.Succeeded != 5 || s.Active != 0 || !meta.IsStatusConditionTrue(s.Conditions, "Complete") || !meta.IsStatusConditionFalse(s.Conditions, "Failed") {
		t.Errorf("%+v", s)
	}
}

func TestJobWithAFailedNodeEndsAsFailed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, job())
	c.look()
	c.answer(v1beta1.ImagePhaseFailed, "404")
	c.look()
	s := c.job.Status
	if s.CompletionTime == nil || s.Failed != 2 || len(s.FailedNodes) != 2 || !strings.Contains(s.Message, "node-0: 404") || !meta.IsStatusConditionTrue(s.Conditions, "Failed") {
		t.Errorf("%+v", s)
	}
}

func TestParallelismZeroPauses(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, job(func(j *v1beta1.ImagePullJob) { j.Spec.Parallelism = new(intstr.FromInt32(0)) }))
	if d := c.look(); len(d.Start) != 0 || d.Status.CompletionTime != nil {
		t.Errorf("%+v", d)
	}
}

func TestNodeThatSaysNothingIsCountedAsFailed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, job())
	c.look()
	c.now = now.Add(10 * time.Second)
	if d := c.look(); !d.Again.Equal(now.Add(10 * time.Minute)) {
		t.Errorf("again at %s", d.Again)
	}
	c.now = now.Add(10 * time.Minute)
	if c.look(); c.job.Status.Failed != 1 || !strings.Contains(c.job.Status.Message, "not responded for a long time") {
		t.Errorf("%+v", c.job.Status)
	}
}

func TestDeadlineEndsTheJobAndItsPulls(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, job(func(j *v1beta1.ImagePullJob) {
		j.Spec.CompletionPolicy.ActiveDeadlineSeconds = new(int64(700))
		j.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(60))
	}))
	c.look()
	if n := c.prune(c.job); n != 2 {
		t.Errorf("%d entries while the job runs", n)
	}
	c.now = now.Add(700 * time.Second)
	c.look()
	if s := c.job.Status; s.CompletionTime == nil || s.Conditions[1].Reason != jobplan.ReasonDeadlineExceeded || !strings.Contains(s.Conditions[1].Message, "0 of 3") {
		t.Errorf("%+v", s)
	}
	if n := c.prune(c.job); n != 0 {
		t.Errorf("%d pulls go on", n)
	}
	if d := c.look(); d.Delete || !d.Again.Equal(c.now.Add(time.Minute)) {
		t.Errorf("%+v", d)
	}
	c.now = c.now.Add(time.Minute)
	if d := c.look(); !d.Delete {
		t.Errorf("not deleted after its time to live: %+v", d)
	}
}

func TestDeletedJobCancelsItsPulls(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, job())
	c.look()
	if n := c.prune(); n != 0 {
		t.Errorf("%d entries left", n)
	}
}

func TestEntriesStayUntilTheJobHasCountedThem(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, job(func(j *v1beta1.ImagePullJob) { j.Spec.Parallelism = nil }))
	c.look()
	c.answer(v1beta1.ImagePhaseSucceeded, "")
	c.now = now.Add(time.Hour)
	if n := c.prune(c.job); n != 1 {
		t.Errorf("%d entries while the job runs", n)
	}
	for range 3 {
		c.look()
		c.answer(v1beta1.ImagePhaseSucceeded, "")
	}
	if c.look(); c.job.Status.Succeeded != 3 {
		t.Fatalf("%+v", c.job.Status)
	}
	c.now = c.now.Add(time.Hour)
	if n := c.prune(c.job); n != 0 {
		t.Errorf("%d entries after their time to live", n)
	}
}

func TestJobThatNeverCompletesPullsOnNewNodesAndEachDayAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, job(func(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy.Type = v1beta1.CompletionNever }))
	c.look()
	c.answer(v1beta1.ImagePhaseSucceeded, "")
	if d := c.look(); d.Status.CompletionTime != nil || d.Status.Succeeded != 1 {
		t.Errorf("%+v", d.Status)
	}
	c.nodes = append(c.nodes, &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "new"}})
	if d := c.look(); len(d.Start) != 1 {
		t.Errorf("%+v", d)
	}
	c.answer(v1beta1.ImagePhaseSucceeded, "")
	c.now = now.Add(24 * time.Hour)
	c.prune(c.job)
	if d := c.look(); len(d.Start) != 2 {
		t.Errorf("a day later: %+v", d)
	}
	if d := c.look(); d.Status.Active != 2 || c.prune(c.job) != 2 {
		t.Errorf("a day later, before the daemons have answered: %+v", d.Status)
	}
}

// An entry that the daemon has not yet removed from the status belongs to the previous pull. It is neither the outcome
// of this job nor a reason for the daemon to skip the pull.
func TestJobThatIsCreatedAgainHasItsImagePulledAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, job())
	c.look()
	c.answer(v1beta1.ImagePhaseFailed, "404")
	c.look()
	c.job = job(func(j *v1beta1.ImagePullJob) { j.UID = types.UID("again") })
	c.prune()
	if d := c.look(); len(d.Start) != 1 {
		t.Fatalf("%+v", d)
	}
	if d := c.look(); d.Status.Active != 1 || d.Status.Failed != 0 {
		t.Errorf("counts what was before: %+v", d.Status)
	}
	c.answer(v1beta1.ImagePhaseSucceeded, "")
	if c.look(); c.job.Status.Succeeded != 1 {
		t.Errorf("%+v", c.job.Status)
	}
}

func TestSecondJobOfAnImageHasItPulledAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, job())
	c.look()
	c.answer(v1beta1.ImagePhaseFailed, "404")
	c.look()
	first := c.job
	c.job = job(func(j *v1beta1.ImagePullJob) { j.UID = types.UID("second") })
	if d := c.look(); len(d.Start) != 1 {
		t.Fatalf("%+v", d)
	}
	if d := c.look(); d.Status.Active != 1 || d.Status.Failed != 0 {
		t.Errorf("counts what was before: %+v", d.Status)
	}
	c.answer(v1beta1.ImagePhaseSucceeded, "")
	if c.look(); c.job.Status.Succeeded != 1 || c.prune(first, c.job) != 1 {
		t.Errorf("%+v", c.job.Status)
	}
}

func TestJobWithAMalformedImage(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, job(func(j *v1beta1.ImagePullJob) { j.Spec.Image = "a b" }))
	if d := c.look(); d.Status.CompletionTime == nil || len(d.Start) > 0 || d.Status.Conditions[0].Reason != jobplan.ReasonInvalidImage ||
		!strings.HasPrefix(d.Status.Message, "spec.image: invalid image reference \"a b\"") {
		t.Errorf("%+v", d)
	}
}

func TestListSumsUpItsJobs(t *testing.T) {
	t.Parallel()
	list := &v1beta1.ImageListPullJob{}
	list.Spec.Images = []string{"a", "b"}
	list.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(60))
	ended := metav1.NewTime(now)
	a := &v1beta1.ImagePullJob{Status: v1beta1.ImagePullJobStatus{CompletionTime: &ended, Desired: 1, Succeeded: 1}}
	b := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Name: "job-b"}}
	status, _, _ := jobplan.List(list, map[string]*v1beta1.ImagePullJob{"a": a, "b": b}, now)
	if status.Desired != 2 || status.Active != 1 || status.Completed != 1 || status.Succeeded != 1 || status.CompletionTime != nil {
		t.Errorf("%+v", status)
	}
	b.Status = v1beta1.ImagePullJobStatus{CompletionTime: &ended, Desired: 1, Failed: 1, Message: "404"}
	list.Status, _, _ = jobplan.List(list, map[string]*v1beta1.ImagePullJob{"a": a, "b": b}, now)
	if s := list.Status; s.CompletionTime == nil || len(s.FailedImageStatuses) != 1 || s.FailedImageStatuses[0].Name != "b" || !meta.IsStatusConditionTrue(s.Conditions, "Failed") {
		t.Errorf("%+v", s)
	}
	if _, remove, _ := jobplan.List(list, nil, now.Add(time.Minute)); !remove {
		t.Error("not deleted after its time to live")
	}
}
