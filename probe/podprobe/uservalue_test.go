package podprobe_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1alpha1"
)

// What a user has set by hand is neither fought over nor removed.
func TestAUsersValueStays(t *testing.T) {
	t.Parallel()
	l, m := &life{t: t, pod: pod("a")}, []v1alpha1.PodProbeMarker{marker("m")}
	l.see(m, said(v1alpha1.ProbeSucceeded))

	taken := desiredOf(t, l.pod, compile(m...), said(v1alpha1.ProbeSucceeded), noon)
	delete(taken.Annotations, cost) // an update by somebody else ends our ownership
	l.pod = applied(t, l.pod, taken)
	l.pod.Annotations[cost] = "77"
	l.writes = 0
	l.see(m, said(v1alpha1.ProbeSucceeded))
	l.carries(map[string]string{"free": "yes"}, "77", 1, 1) // which records it
	l.see(m, said(v1alpha1.ProbeSucceeded))
	l.carries(map[string]string{"free": "yes"}, "77", 1, 0)
	if diff := cmp.Diff([]string{cost}, l.overridden); diff != "" {
		t.Errorf("overridden (-want +got):\n%s", diff)
	}

	restarted := &life{t: t, pod: l.pod.DeepCopy()}
	restarted.see(m, said(v1alpha1.ProbeSucceeded))
	restarted.carries(map[string]string{"free": "yes"}, "77", 1, 0)
	restarted.see(nil, nil)
	restarted.carries(nil, "77", 0, 1)
	if text, ok := restarted.pod.Annotations["refit.dev/podprobe-overridden"]; ok {
		t.Errorf("the record stays behind: %s", text)
	}

	l.see(m, said(v1alpha1.ProbeFailed)) // a change of state is what the marker is for
	l.carries(map[string]string{"busy": "yes"}, "10", 1, 1)
}

// A NodePodProbe that is made again has no results for a while. That is no change of state.
func TestAUsersValueStaysWhileThereIsNoResult(t *testing.T) {
	t.Parallel()
	l, m := &life{t: t, pod: pod("a")}, []v1alpha1.PodProbeMarker{marker("m")}
	l.see(m, said(v1alpha1.ProbeSucceeded))
	taken := desiredOf(t, l.pod, compile(m...), said(v1alpha1.ProbeSucceeded), noon)
	delete(taken.Annotations, cost)
	l.pod = applied(t, l.pod, taken)
	l.pod.Annotations[cost] = "77"
	l.see(m, said(v1alpha1.ProbeSucceeded)) // which records it
	l.writes = 0
	l.see(m, nil)
	l.see(m, said(v1alpha1.ProbeSucceeded))
	l.carries(map[string]string{"free": "yes"}, "77", 1, 0)
	l.see(m, nil)
	l.see(m, said(v1alpha1.ProbeFailed))
	l.carries(map[string]string{"busy": "yes"}, "10", 1, 1)
}

func TestAUsersValueThatIsTheOneOfAnotherStateStaysWhileThereIsNoResult(t *testing.T) {
	t.Parallel()
	l, m := &life{t: t, pod: pod("a")}, []v1alpha1.PodProbeMarker{marker("m")}
	l.see(m, said(v1alpha1.ProbeFailed))
	taken := desiredOf(t, l.pod, compile(m...), said(v1alpha1.ProbeFailed), noon)
	delete(taken.Annotations, cost)
	l.pod = applied(t, l.pod, taken)
	l.pod.Annotations[cost] = "-10" // the value after a success
	l.see(m, said(v1alpha1.ProbeFailed))
	l.see(m, nil)
	l.see(m, said(v1alpha1.ProbeFailed))
	l.writes = 0
	l.carries(map[string]string{"busy": "yes"}, "-10", 1, 0)
}

func TestAUsersRemovalStays(t *testing.T) {
	t.Parallel()
	l, m := &life{t: t, pod: pod("a")}, []v1alpha1.PodProbeMarker{marker("m")}
	l.see(m, said(v1alpha1.ProbeSucceeded))
	removed := desiredOf(t, l.pod, compile(m...), said(v1alpha1.ProbeSucceeded), noon)
	delete(removed.Labels, "free")
	l.pod = applied(t, l.pod, removed)
	l.writes = 0
	l.see(m, said(v1alpha1.ProbeSucceeded))
	l.carries(nil, "-10", 1, 1) // which records it
	l.last = nil                // and the next leader reads it
	l.see(m, said(v1alpha1.ProbeSucceeded))
	l.carries(nil, "-10", 1, 0)
}

// The pod's template may have a value for the time before the first result.
func TestAValueOfTheTemplateIsReplaced(t *testing.T) {
	t.Parallel()
	l := &life{t: t, pod: pod("a", func(p *corev1.Pod) { p.Annotations = map[string]string{cost: "0"} })}
	l.see([]v1alpha1.PodProbeMarker{marker("m")}, said(v1alpha1.ProbeSucceeded))
	l.carries(map[string]string{"free": "yes"}, "-10", 1, 1)
}
