package entry_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/entry"
	"github.com/refit-project/refit/image/jobplan"
)

// flood is a namespace with jobs that never complete, whose pulls fail.
type flood struct {
	node *v1beta1.NodeImage
	jobs []*v1beta1.ImagePullJob
	now  time.Time
}

func newFlood(n int) *flood {
	f := &flood{node: &v1beta1.NodeImage{}, now: now}
	f.node.Name = "n"
	for i := range n {
		j := nth("mallory", i)
		j.UID += "-0000-0000-0000-0123456789ab"
		j.Spec.CompletionPolicy.Type = v1beta1.CompletionNever
		f.jobs = append(f.jobs, j)
	}
	return f
}

// begin adds the jobs that do not wait, and reports whether there were any.
func (f *flood) begin() bool {
	begun := false
	for _, j := range f.jobs {
		d := jobplan.Job(j, []*v1beta1.NodeImage{f.node}, f.now)
		if j.Status = d.Status; len(d.Start) > 0 {
			begun = entry.Request(f.node, j, nil, f.now) || begun
		}
	}
	return begun
}

// end ends all pulls, every third one with success.
func (f *flood) end() {
	states := map[image.Target]image.State{}
	for i, want := range image.Wanted(f.node.Spec) {
		state, known := image.Known(&f.node.Status, want)
		if !known || state.Version != want.Version {
			state = image.State{Phase: v1beta1.ImagePhaseFailed, Version: want.Version, Started: f.now, Completed: f.now, Message: "attempt 4 of 4 failed: " + strings.Repeat("no such host; ", 50)}
			if i%3 == 0 {
				state.Phase, state.Message = v1beta1.ImagePhaseSucceeded, ""
			}
		}
		states[want.Target] = state
	}
	f.node.Status = image.Status(f.node.Spec, states)
}

func (f *flood) size(t *testing.T) int {
	t.Helper()
	text, err := json.Marshal(f.node)
	if err != nil {
		t.Fatal(err)
	}
	return len(text) - len(f.node.Annotations[v1beta1.AnnotationEndedPulls])
}

func (f *flood) find(o corev1.ObjectReference) *v1beta1.ImagePullJob { return among(f.jobs...)(o) }

// A tenant with 200 jobs that never complete has a small part of a NodeImage, and each of its jobs has its outcome until the
// image is pulled again, a day later.
func TestJobsThatNeverCompleteKeepTheirOutcomesInASmallNodeImage(t *testing.T) {
	t.Parallel()
	f := newFlood(200)
	largest := 0
	for round := 0; f.begin(); round++ {
		if round > 200 {
			t.Fatal("there is no end of it")
		}
		f.end()
		largest = max(largest, f.size(t))
		f.now = f.now.Add(time.Second)
	}
	outcomes := len(f.node.Annotations[v1beta1.AnnotationEndedPulls])
	t.Logf("at most %d bytes, and %d bytes of outcomes", largest, outcomes)
	if largest > 24<<10 || outcomes > 32<<10 {
		t.Errorf("at most %d bytes, and %d bytes of outcomes", largest, outcomes)
	}
	succeeded, failed := 0, 0
	for _, j := range f.jobs {
		succeeded += int(j.Status.Succeeded)
		failed += int(j.Status.Failed)
		if j.Status.Active != 0 || j.Status.Succeeded+j.Status.Failed != 1 {
			t.Errorf("%s: %+v", j.Name, j.Status)
		}
		if j.Status.Failed == 1 && (len(j.Status.FailedNodes) != 1 || !strings.Contains(j.Status.Message, "n: attempt 4 of 4 failed: no such host")) {
			t.Errorf("%s: %+v", j.Name, j.Status)
		}
	}
	if succeeded < 30 || failed < 100 {
		t.Errorf("%d have succeeded, %d failed", succeeded, failed)
	}
	if changed, _ := entry.Prune(f.node, f.find, f.now); changed {
		t.Error("outcomes that count were removed")
	}
	f.now = f.now.Add(24 * time.Hour)
	if d := jobplan.Job(f.jobs[0], []*v1beta1.NodeImage{f.node}, f.now); len(d.Start) != 1 {
		t.Errorf("the image is not pulled again after a day: %+v", d)
	}
	if changed, _ := entry.Prune(f.node, f.find, f.now); !changed || f.node.Annotations[v1beta1.AnnotationEndedPulls] != "" {
		t.Errorf("changed %t, left: %q", changed, f.node.Annotations)
	}
}

// One that has ended is not begun again for another job, and that job has an outcome of its own.
func TestAJobWhoseEntryWasRemovedIsNotBegunAgain(t *testing.T) {
	t.Parallel()
	f := newFlood(40)
	for f.begin() {
		f.end()
	}
	first := f.jobs[0]
	if _, ok := f.node.Spec.Images["mallory-0"]; ok {
		t.Fatal("its entry is there")
	}
	if e := entry.EndedFor(f.node, first, f.now); e == nil || e.Phase != v1beta1.ImagePhaseSucceeded || !entry.Recorded(f.node, first.Namespace, first.Name, first.UID) {
		t.Fatalf("%+v", e)
	}
	for name, change := range map[string]func(*v1beta1.ImagePullJob){
		"created again":        func(j *v1beta1.ImagePullJob) { j.UID = "another" },
		"of another namespace": func(j *v1beta1.ImagePullJob) { j.Namespace = "shop" },
		"with a similar name":  func(j *v1beta1.ImagePullJob) { j.Name = "-0" },
	} {
		other := first.DeepCopy()
		change(other)
		if e := entry.EndedFor(f.node, other, f.now); e != nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
	entry.Request(f.node, first, nil, f.now.Add(time.Second))
	if e := entry.EndedFor(f.node, first, f.now); e != nil {
		t.Errorf("while it is pulled again: %+v", e)
	}
}

// Few outcomes that nobody needs wait for another write, and many do not.
func TestOutcomesThatNoJobNeedsAreRemoved(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		gone int
		wait time.Duration
		want bool
	}{
		"none":             {0, time.Hour, false},
		"few":              {3, 0, false},
		"few, for minutes": {3, 6 * time.Minute, true},
		"many":             {30, 0, true},
	} {
		f := newFlood(60)
		for f.begin() {
			f.end()
		}
		before := len(f.node.Annotations[v1beta1.AnnotationEndedPulls])
		left := f.jobs[tt.gone:]
		// Entries whose jobs are gone are removed at once, so the jobs with outcomes come first.
		changed, again := entry.Prune(f.node, among(left...), f.now.Add(tt.wait))
		if after := len(f.node.Annotations[v1beta1.AnnotationEndedPulls]); changed != tt.want || (after < before) != tt.want {
			t.Errorf("%s: changed %t, %d of %d bytes are left", name, changed, after, before)
		}
		if name == "few" && !again.Equal(now.Add(5*time.Minute)) {
			t.Errorf("%s: again %v", name, again)
		}
	}
}

// Whatever somebody has written into the annotation is no outcome.
func TestAMalformedOutcomeIsNone(t *testing.T) {
	t.Parallel()
	j := job()
	for _, line := range []string{"", "\n", "shop/j job", "shop/j job Succeeded x ", "shop/j job Succeeded 1", "x shop/j job Succeeded 1 ", strings.Repeat("shop/j ", 1000)} {
		node := &v1beta1.NodeImage{}
		node.Annotations = map[string]string{v1beta1.AnnotationEndedPulls: line}
		if e := entry.EndedFor(node, j, now); e != nil {
			t.Errorf("%.40q: %+v", line, e)
		}
		entry.Prune(node, among(j), now)
		entry.Request(node, j, nil, now)
	}
	node := &v1beta1.NodeImage{}
	node.Annotations = map[string]string{v1beta1.AnnotationEndedPulls: fmt.Sprintf("a/b c Failed 1 x y\nshop/j job Failed %d why not\n", now.Unix())}
	if e := entry.EndedFor(node, j, now); e == nil || e.Phase != v1beta1.ImagePhaseFailed || e.Message != "why not" {
		t.Errorf("%+v", e)
	}
}
