package missed_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/sidecarset/missed"
)

// Each reason holds although the ones after it would too: the first is the one that the user can do something about.
func TestOfSeveralReasonsTheFirstIsReported(t *testing.T) {
	t.Parallel()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "log", CreationTimestamp: metav1.NewTime(start)}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "agent"}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(start.Add(-time.Hour)), Annotations: map[string]string{
		corev1.MirrorPodAnnotationKey: "x", v1beta1.AnnotationSidecarSetSkipped: `{"log":"why not"}`,
	}}}
	pod.Spec.Containers = []corev1.Container{{Name: "agent", Env: []corev1.EnvVar{{Name: v1beta1.EnvSidecarInjected, Value: "true"}}}}
	is := func(disabled bool, want missed.Reason) {
		t.Helper()
		if got := missed.Judge(pod, set, &budget.Pod{}, disabled); got.Reason != want {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
	is(true, missed.Mirror)
	delete(pod.Annotations, corev1.MirrorPodAnnotationKey)
	is(true, missed.Excluded)
	is(false, missed.Skipped)
	delete(pod.Annotations, v1beta1.AnnotationSidecarSetSkipped)
	is(false, missed.Detached)
	pod.Spec.Containers = nil
	is(false, missed.Older)
	pod.CreationTimestamp = metav1.NewTime(start.Add(time.Hour))
	is(false, missed.NotReached)
}

func TestWhatIsKeptOfAPodThatWasNotInjected(t *testing.T) {
	t.Parallel()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "log"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", CreationTimestamp: metav1.NewTime(start), OwnerReferences: []metav1.OwnerReference{
		{UID: "somebody"}, {UID: "set", Controller: new(true)},
	}}}
	base := missed.Pod{Reason: missed.NotReached, Message: string(missed.NotReached), Workload: "set", UID: "u", Created: pod.CreationTimestamp}
	for name, tt := range map[string]struct {
		seen budget.Pod
		want func(*missed.Pod)
	}{
		"nothing":   {budget.Pod{}, func(*missed.Pod) {}},
		"ready":     {budget.Pod{Ready: true}, func(p *missed.Pod) { p.Ready = true }},
		"under way": {budget.Pod{UnderWay: true}, func(p *missed.Pod) { p.UnderWay = true }},
		"stuck":     {budget.Pod{Stuck: true}, func(p *missed.Pod) { p.Stuck = true }},
	} {
		want := base
		tt.want(&want)
		if diff := cmp.Diff(want, missed.Judge(pod, set, &tt.seen, false)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// They are those that the status says are to be evicted.
func TestPodsThatAreToBeEvictedAreCounted(t *testing.T) {
	t.Parallel()
	pods := map[types.NamespacedName]missed.Pod{}
	for i, pod := range []missed.Pod{
		{Reason: missed.NotReached, Workload: "a"}, {Reason: missed.Older, Workload: "a"}, {Reason: missed.NotReached}, {Reason: missed.Skipped, Workload: "a"},
		{Reason: missed.Excluded, Workload: "a"}, {Reason: missed.Mirror, Workload: "a"}, {Reason: missed.Detached, Workload: "a"},
	} {
		pods[key("a", i)] = pod
	}
	if got := missed.Repairable(maps.All(pods)); got != 2 {
		t.Errorf("%d are to be evicted, want 2", got)
	}
}

// The pauses of a pod that is refused for ever end at an hour, so that a budget that is opened later is noticed.
func TestPausesAreAnHourAtMost(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for other := range c.pods {
		if other != key("a", 0) {
			delete(c.pods, other)
		}
	}
	for range 80 {
		c.repair.Refused("", c.now)
	}
	if _, found, again := c.repair.Next(maps.All(c.pods), c.workload, c.now); found || !again.Equal(c.now.Add(time.Hour)) {
		t.Errorf("found %t, again in %s", found, again.Sub(c.now))
	}
	if _, found, _ := c.repair.Next(maps.All(c.pods), c.workload, c.now.Add(time.Hour)); !found {
		t.Error("not tried again after an hour")
	}
}

func TestTheWorkloadOfARepairThatIsUnderWay(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	if got := c.repair.UnderWay(); got != "" {
		t.Errorf("before: %q", got)
	}
	c.next()
	if got := c.repair.UnderWay(); got != "a" {
		t.Errorf("after an eviction: %q", got)
	}
	c.replaced("a", 1, 1)
	c.repair.Next(maps.All(map[types.NamespacedName]missed.Pod{}), func(string) missed.Workload { return missed.Workload{Pods: 3, Ready: 3} }, c.now)
	if got := c.repair.UnderWay(); got != "" {
		t.Errorf("when it is replaced: %q", got)
	}
}
