package image_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
)

func TestJobWithoutNodesIsCompleteAndSaysWhy(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0, job())
	c.look()
	if s := c.job.Status; s.CompletionTime == nil || s.Message != "no node is selected" || !meta.IsStatusConditionTrue(s.Conditions, "Complete") {
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
	if s.Message != "3 of 3 nodes failed, for example node-0: 503" || strings.Join(s.FailedNodes, " ") != "node-0 node-1 node-2" || s.Active != 0 {
		t.Errorf("%+v", s)
	}
	if c := s.Conditions; len(c) != 2 || c[0].Type != "Complete" || c[0].Status != metav1.ConditionFalse || c[1].Reason != image.ReasonPullFailed || c[1].Message != s.Message || !c[1].LastTransitionTime.Time.Equal(now) {
		t.Errorf("%+v", c)
	}
}

// The job looks again at the earliest of what may end without a change of a node.
func TestJobLooksAgainAtItsDeadline(t *testing.T) {
	t.Parallel()
	for deadline, want := range map[int64]time.Duration{60: time.Minute, 3600: 10 * time.Minute} {
		c := newCluster(t, 1, job(func(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy.ActiveDeadlineSeconds = &deadline }))
		c.look()
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
		c.nodes[0].Spec.Images["game"].Tags[0].PullPolicy.ActiveDeadlineSeconds = deadline
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
	status, remove, again := image.PlanList(list, jobs, now)
	if remove || !again.IsZero() || status.Succeeded != 2 || !meta.IsStatusConditionTrue(status.Conditions, "Complete") || status.Conditions[0].Message != "all images are pulled" || !status.StartTime.Time.Equal(now) {
		t.Errorf("%t, %s, %+v", remove, again, status)
	}
	list.Status = status
	if _, remove, again := image.PlanList(list, nil, now.Add(1000*time.Hour)); remove || !again.IsZero() {
		t.Errorf("removed %t, again at %s", remove, again)
	}
	list.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(60))
	if _, remove, again := image.PlanList(list, nil, now.Add(59*time.Second)); remove || !again.Equal(now.Add(time.Minute)) {
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
		got, _, _ := image.PlanList(list, map[string]*v1beta1.ImagePullJob{"a": {Status: status}}, now)
		if got.Succeeded != 0 || len(got.FailedImageStatuses) != 1 || got.Conditions[1].Message != "1 of 1 images failed: a" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Each field that a reader of the status looks at is news; bytes within a fifth are not.
func TestNewsIsWhatAReaderWouldSee(t *testing.T) {
	t.Parallel()
	at, later := metav1.NewTime(now), metav1.NewTime(now.Add(time.Second))
	base := func() v1beta1.NodeImageStatus {
		return v1beta1.NodeImageStatus{Desired: 1, Pulling: 1, ImageStatuses: map[string]v1beta1.ImageStatus{"game": {Tags: []v1beta1.ImageTagStatus{{
			Tag: "v1", Phase: v1beta1.ImagePhasePulling, Progress: 45, Version: 1, StartTime: &at, CompletionTime: &at, Message: "m", ImageID: "i", PulledBytes: 45,
		}}}}}
	}
	tag := func(change func(*v1beta1.ImageTagStatus)) func(*v1beta1.NodeImageStatus) {
		return func(s *v1beta1.NodeImageStatus) { change(&s.ImageStatuses["game"].Tags[0]) }
	}
	for name, tt := range map[string]struct {
		change func(*v1beta1.NodeImageStatus)
		quiet  bool
	}{
		"nothing":       {func(*v1beta1.NodeImageStatus) {}, true},
		"some bytes":    {tag(func(s *v1beta1.ImageTagStatus) { s.Progress, s.PulledBytes = 59, 59 }), true},
		"a fifth":       {tag(func(s *v1beta1.ImageTagStatus) { s.Progress = 60 }), false},
		"desired":       {func(s *v1beta1.NodeImageStatus) { s.Desired++ }, false},
		"succeeded":     {func(s *v1beta1.NodeImageStatus) { s.Succeeded++ }, false},
		"failed":        {func(s *v1beta1.NodeImageStatus) { s.Failed++ }, false},
		"pulling":       {func(s *v1beta1.NodeImageStatus) { s.Pulling++ }, false},
		"waiting":       {func(s *v1beta1.NodeImageStatus) { s.Waiting++ }, false},
		"another image": {func(s *v1beta1.NodeImageStatus) { s.ImageStatuses["b"] = v1beta1.ImageStatus{} }, false},
		"its name": {func(s *v1beta1.NodeImageStatus) {
			s.ImageStatuses = map[string]v1beta1.ImageStatus{"b": s.ImageStatuses["game"]}
		}, false},
		"tag":             {tag(func(s *v1beta1.ImageTagStatus) { s.Tag = "v2" }), false},
		"phase":           {tag(func(s *v1beta1.ImageTagStatus) { s.Phase = v1beta1.ImagePhaseWaiting }), false},
		"version":         {tag(func(s *v1beta1.ImageTagStatus) { s.Version++ }), false},
		"message":         {tag(func(s *v1beta1.ImageTagStatus) { s.Message = "n" }), false},
		"image ID":        {tag(func(s *v1beta1.ImageTagStatus) { s.ImageID = "j" }), false},
		"start time":      {tag(func(s *v1beta1.ImageTagStatus) { s.StartTime = &later }), false},
		"completion time": {tag(func(s *v1beta1.ImageTagStatus) { s.CompletionTime = nil }), false},
	} {
		is := base()
		if tt.change(&is); image.News(base(), is) == tt.quiet {
			t.Errorf("%s: news %t", name, !tt.quiet)
		}
	}
}

func TestPercentIsBetweenZeroAndAHundred(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		state image.State
		want  int32
	}{
		{image.State{Phase: v1beta1.ImagePhasePulling, Pulled: 1, Total: 0}, 0},
		{image.State{Phase: v1beta1.ImagePhasePulling, Pulled: -5, Total: 10}, 0},
		{image.State{Phase: v1beta1.ImagePhasePulling, Pulled: 1, Total: 1}, 99},
		{image.State{Phase: v1beta1.ImagePhasePulling, Pulled: 99, Total: 100}, 99},
		{image.State{Phase: v1beta1.ImagePhaseWaiting, Pulled: 5, Total: 10}, 0},
		{image.State{Phase: v1beta1.ImagePhaseFailed, Pulled: 5, Total: 10}, 0},
		{image.State{Phase: v1beta1.ImagePhaseSucceeded}, 100},
	} {
		if got := tt.state.Percent(); got != tt.want {
			t.Errorf("%+v: %d %%, want %d", tt.state, got, tt.want)
		}
	}
}

// A message of the allowed length is whole; a longer one says that something is missing.
func TestMessageIsCutAtItsBound(t *testing.T) {
	t.Parallel()
	say := func(n int) string {
		states := map[image.Reference]image.State{{Repository: "a", Tag: "v2"}: {Phase: v1beta1.ImagePhaseFailed, Message: strings.Repeat("x", n)}}
		return image.Status(spec(), states).ImageStatuses["a"].Tags[0].Message
	}
	if got := say(512); got != strings.Repeat("x", 512) {
		t.Errorf("%d bytes", len(got))
	}
	if got := say(513); got != strings.Repeat("x", 512)+"…" {
		t.Errorf("%d bytes", len(got))
	}
	for text, want := range map[string]string{
		"x" + strings.Repeat("é", 300): "x" + strings.Repeat("é", 255) + "…", // the bound is within a rune
		strings.Repeat("\x80", 513):    "…",                                  // no text at all
	} {
		states := map[image.Reference]image.State{{Repository: "a", Tag: "v2"}: {Phase: v1beta1.ImagePhaseFailed, Message: text}}
		if got := image.Status(spec(), states).ImageStatuses["a"].Tags[0].Message; got != want {
			t.Errorf("%q is cut to %q", text, got)
		}
	}
}

// A job says while it runs that nodes have failed, and at its end that none has.
func TestMessageOfARunningJob(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, job())
	c.look()
	c.answer(v1beta1.ImagePhaseFailed, "404")
	c.look()
	if s := c.job.Status; s.CompletionTime != nil || s.Message != "2 of 3 nodes failed, for example node-0: 404" {
		t.Errorf("%+v", s)
	}
	c = newCluster(t, 1, job())
	if c.look(); c.job.Status.Message != "" {
		t.Errorf("at the beginning: %q", c.job.Status.Message)
	}
	c.answer(v1beta1.ImagePhaseSucceeded, "")
	if c.look(); c.job.Status.Message != "all nodes have the image" {
		t.Errorf("at the end: %q", c.job.Status.Message)
	}
}

// The API server lists nodes in any order. Which of them begin must not depend on it: the decision is made again after a conflict.
func TestNodesBeginInTheOrderOfTheirNames(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4, job())
	c.nodes[0], c.nodes[3] = c.nodes[3], c.nodes[0]
	if d := c.look(); strings.Join(d.Start, " ") != "node-0 node-1" {
		t.Errorf("%q begin", d.Start)
	}
}

// What a daemon has reported before it was started again is reported as it was.
func TestFailureIsKnownAfterARestart(t *testing.T) {
	t.Parallel()
	object := v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{"game": {Tags: []v1beta1.ImageTagSpec{{Tag: "v1", OwnerReferences: []corev1.ObjectReference{
		{Namespace: "shop", Name: "j"}, {Namespace: "bar", Name: "k"},
	}}}}}}
	want := image.Wanted(object)[0]
	if strings.Join(want.Owners, " ") != "shop/j bar/k" {
		t.Errorf("owners %q", want.Owners)
	}
	failed := image.State{Phase: v1beta1.ImagePhaseFailed, Message: "404", Started: now, Completed: now.Add(time.Minute)}
	status := image.Status(object, map[image.Reference]image.State{want.Reference: failed})
	if status.Failed != 1 || status.Desired != 1 {
		t.Errorf("%+v", status)
	}
	known, ok := image.Known(&status, want)
	if !ok || !known.Started.Equal(now) || !known.Completed.Equal(now.Add(time.Minute)) || known.Message != "404" || known.ImageID != "" {
		t.Errorf("%t, %+v", ok, known)
	}
	want.Version++
	if _, ok := image.Known(&status, want); ok {
		t.Error("another version is known")
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
	status, _, _ := image.PlanList(list, map[string]*v1beta1.ImagePullJob{"a b": c.job}, now)
	if status.Succeeded != 0 || len(status.FailedImageStatuses) != 1 || status.FailedImageStatuses[0].Message != c.job.Status.Message || status.CompletionTime == nil {
		t.Errorf("%+v", status)
	}
}
