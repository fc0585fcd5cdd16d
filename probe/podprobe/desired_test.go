package podprobe_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/probe/podprobe"
)

func states(of map[string]v1alpha1.ContainerProbeState) podprobe.States { return of }

func said(s v1alpha1.ProbeState) podprobe.States {
	return podprobe.States{"m#idle": state(s, "I am "+strings.ToLower(string(s)))}
}

func TestDesired(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pod     *corev1.Pod
		markers []v1alpha1.PodProbeMarker
		states  podprobe.States
		want    podprobe.Fields
	}{
		"succeeded": {
			states: said(v1alpha1.ProbeSucceeded),
			want: podprobe.Fields{
				Labels: map[string]string{"free": "yes"}, Annotations: map[string]string{cost: "-10"},
				Conditions: []corev1.PodCondition{{Type: idle, Status: "True", Reason: "ProbeSucceeded", Message: "I am succeeded"}},
			},
		},
		"failed": {
			states: said(v1alpha1.ProbeFailed),
			want: podprobe.Fields{
				Labels: map[string]string{"busy": "yes"}, Annotations: map[string]string{cost: "10"},
				Conditions: []corev1.PodCondition{{Type: idle, Status: "False", Reason: "ProbeFailed", Message: "I am failed"}},
			},
		},
		"unknown is False, as with kruise, and says so": {
			states: podprobe.States{"m#idle": state(v1alpha1.ProbeUnknown, "")},
			want: podprobe.Fields{Conditions: []corev1.PodCondition{{
				Type: idle, Status: "False", Reason: "ProbeUnknown", Message: "the current instance of the container has no result yet",
			}}},
		},
		"nothing said":                          {},
		"of another marker with the same probe": {states: podprobe.States{"n#idle": state(v1alpha1.ProbeSucceeded, "")}},
		"relabelled pod":                        {pod: pod("a", func(p *corev1.Pod) { p.Labels["app"] = "web" }), states: said(v1alpha1.ProbeSucceeded)},
		"marker of another namespace, though the name is equal": {markers: []v1alpha1.PodProbeMarker{marker("m", func(m *v1alpha1.PodProbeMarker) { m.Namespace = "bank" })}, states: said(v1alpha1.ProbeSucceeded)},
		"two markers at odds: the first by name counts": {
			markers: []v1alpha1.PodProbeMarker{marker("n"), marker("m")},
			states:  podprobe.States{"m#idle": state(v1alpha1.ProbeSucceeded, "m"), "n#idle": state(v1alpha1.ProbeFailed, "n")},
			want: podprobe.Fields{
				Labels: map[string]string{"free": "yes", "busy": "yes"}, Annotations: map[string]string{cost: "-10"},
				Conditions: []corev1.PodCondition{{Type: idle, Status: "True", Reason: "ProbeSucceeded", Message: "m"}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.pod == nil {
				tc.pod = pod("a")
			}
			if tc.markers == nil {
				tc.markers = []v1alpha1.PodProbeMarker{marker("m")}
			}
			for _, m := range []*map[string]string{&tc.want.Labels, &tc.want.Annotations} {
				if *m == nil {
					*m = map[string]string{}
				}
			}
			got := desiredOf(t, tc.pod, compile(tc.markers...), tc.states, noon)
			for i := range got.Conditions {
				if !got.Conditions[i].LastTransitionTime.Equal(&metav1.Time{Time: noon}) {
					t.Errorf("changed at %v", got.Conditions[i].LastTransitionTime)
				}
				got.Conditions[i].LastProbeTime, got.Conditions[i].LastTransitionTime = metav1.Time{}, metav1.Time{}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLongMessagesAreCutBetweenRunes(t *testing.T) {
	t.Parallel()
	long := podprobe.States{"m#idle": state(v1alpha1.ProbeFailed, strings.Repeat("ä", 1000))}
	got := desiredOf(t, pod("a"), compile(marker("m")), long, noon).Conditions[0].Message
	if got != strings.Repeat("ä", 512) {
		t.Errorf("%d bytes: %q", len(got), got[len(got)-8:])
	}
}

// life takes a pod through changes as the manager sees them.
type life struct {
	t      *testing.T
	pod    *corev1.Pod
	last   *podprobe.Fields
	writes int
	// overridden are the keys that were found to have been changed by others.
	overridden []string
}

func (l *life) see(markers []v1alpha1.PodProbeMarker, states podprobe.States) {
	l.t.Helper()
	wanted := desiredOf(l.t, l.pod, compile(markers...), states, noon.Add(time.Hour))
	planned := planOf(l.t, l.pod, wanted, l.last)
	l.overridden = append(l.overridden, planned.Overridden...)
	if !planned.Changed {
		return
	}
	l.writes++
	l.pod, l.last = applied(l.t, l.pod, planned.Apply), &wanted
	again := desiredOf(l.t, l.pod, compile(markers...), states, noon.Add(2*time.Hour))
	if again := planOf(l.t, l.pod, again, l.last); again.Changed || len(again.Overridden) > 0 {
		l.t.Errorf("a second write for the same: %+v", again)
	}
}

// carries compares the pod's fields, and the number of writes since the last comparison.
func (l *life) carries(labels map[string]string, deletionCost string, conditions, writes int) {
	l.t.Helper()
	want := map[string]string{"app": l.pod.Labels["app"]}
	maps.Copy(want, labels)
	if diff := cmp.Diff(want, l.pod.Labels); diff != "" {
		l.t.Errorf("labels (-want +got):\n%s", diff)
	}
	if got := l.pod.Annotations[cost]; got != deletionCost {
		l.t.Errorf("deletion cost %q, want %q", got, deletionCost)
	}
	if got := len(l.pod.Status.Conditions) - 1; got != conditions {
		l.t.Errorf("%d conditions, want %d", got, conditions)
	}
	if l.writes != writes {
		l.t.Errorf("%d writes, want %d", l.writes, writes)
	}
	l.writes = 0
}

func TestChangedResultIsOneWrite(t *testing.T) {
	t.Parallel()
	l, m := &life{t: t, pod: pod("a")}, []v1alpha1.PodProbeMarker{marker("m")}
	l.see(m, said(v1alpha1.ProbeSucceeded))
	l.carries(map[string]string{"free": "yes"}, "-10", 1, 1)
	l.see(m, said(v1alpha1.ProbeSucceeded))
	l.carries(map[string]string{"free": "yes"}, "-10", 1, 0)
	l.see(m, said(v1alpha1.ProbeFailed))
	l.carries(map[string]string{"busy": "yes"}, "10", 1, 1)
	l.see(m, podprobe.States{"m#idle": state(v1alpha1.ProbeUnknown, "")})
	l.carries(nil, "", 1, 1)
	l.see(m, said(v1alpha1.ProbeSucceeded))
	l.carries(map[string]string{"free": "yes"}, "-10", 1, 1)
}

func TestRelabelledPodIsCleaned(t *testing.T) {
	t.Parallel()
	l, m := &life{t: t, pod: pod("a")}, []v1alpha1.PodProbeMarker{marker("m")}
	l.see(m, said(v1alpha1.ProbeSucceeded))
	l.pod.Labels["app"] = "web"
	l.writes = 0
	l.see(m, said(v1alpha1.ProbeSucceeded))
	l.carries(nil, "", 0, 1)
}

func TestDeletedMarkerLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, restarted := range map[string]bool{"manager": false, "restarted manager": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &life{t: t, pod: pod("a")}
			l.see([]v1alpha1.PodProbeMarker{marker("m")}, said(v1alpha1.ProbeFailed))
			if restarted {
				l.last = nil
			}
			l.writes = 0
			l.see(nil, said(v1alpha1.ProbeFailed))
			l.carries(nil, "", 0, 1)
		})
	}
}

// A daemon that is replaced says nothing for a while.
func TestMissingResultsChangeNothing(t *testing.T) {
	t.Parallel()
	l, m := &life{t: t, pod: pod("a")}, []v1alpha1.PodProbeMarker{marker("m")}
	l.see(m, said(v1alpha1.ProbeSucceeded))
	l.see(m, nil)
	l.last = nil
	l.see(m, podprobe.States{"m#idle": {}})
	l.carries(map[string]string{"free": "yes"}, "-10", 1, 1)
}

// A flip while no manager ran is carried out by the next one.
func TestResultThatChangedWhileNoManagerRan(t *testing.T) {
	t.Parallel()
	l, m := &life{t: t, pod: pod("a")}, []v1alpha1.PodProbeMarker{marker("m")}
	l.see(m, said(v1alpha1.ProbeSucceeded))
	l.last, l.writes = nil, 0
	l.see(m, said(v1alpha1.ProbeFailed))
	l.carries(map[string]string{"busy": "yes"}, "10", 1, 1)
}

// Also where the pod has another value of the key that is not Refit's, as one from its template.
func TestFlipIsNotLostAfterAChangeOfLeader(t *testing.T) {
	t.Parallel()
	m := marker("m", func(m *v1alpha1.PodProbeMarker) { delete(m.Spec.Probes[0].MarkerPolicy[0].Annotations, cost) })
	m.Spec.Probes[0].MarkerPolicy[0].Annotations = nil
	l := &life{t: t, pod: pod("a", func(p *corev1.Pod) { p.Annotations = map[string]string{cost: "0"} })}
	l.see([]v1alpha1.PodProbeMarker{m}, said(v1alpha1.ProbeSucceeded))
	l.carries(map[string]string{"free": "yes"}, "0", 1, 1)
	l.last = nil
	l.see([]v1alpha1.PodProbeMarker{m}, said(v1alpha1.ProbeFailed))
	l.carries(map[string]string{"busy": "yes"}, "10", 1, 1)
}

// Beside a kruise-manager that has written the same there is nothing to write.
func TestWhatAKruiseManagerHasWrittenIsEnough(t *testing.T) {
	t.Parallel()
	there := pod("a", func(p *corev1.Pod) {
		p.Labels["free"] = "yes"
		p.Annotations = map[string]string{cost: "-10"}
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: idle, Status: "True", Message: "I am succeeded"})
	})
	l := &life{t: t, pod: there}
	l.see([]v1alpha1.PodProbeMarker{marker("m")}, said(v1alpha1.ProbeSucceeded))
	l.carries(map[string]string{"free": "yes"}, "-10", 1, 0)
}

func TestAConditionKeepsTheTimeOfItsStatus(t *testing.T) {
	t.Parallel()
	l, m := &life{t: t, pod: pod("a")}, []v1alpha1.PodProbeMarker{marker("m")}
	l.see(m, said(v1alpha1.ProbeFailed))
	later := state(v1alpha1.ProbeFailed, "still")
	later.LastTransitionTime = metav1.NewTime(noon.Add(time.Minute))
	l.see(m, states(map[string]v1alpha1.ContainerProbeState{"m#idle": later}))
	condition := l.pod.Status.Conditions[1]
	if condition.Message != "still" || !condition.LastTransitionTime.Time.Equal(noon) {
		t.Errorf("%+v", condition)
	}
}

// Who waits for a condition to have been False for some minutes reads the time from it.
func TestAConditionHasTheTimeOfItsChange(t *testing.T) {
	t.Parallel()
	l, m := &life{t: t, pod: pod("a")}, []v1alpha1.PodProbeMarker{marker("m")}
	l.see(m, said(v1alpha1.ProbeSucceeded))
	failed := state(v1alpha1.ProbeFailed, "gone")
	failed.LastTransitionTime = metav1.NewTime(noon.Add(time.Hour))
	l.see(m, states(map[string]v1alpha1.ContainerProbeState{"m#idle": failed}))
	condition := l.pod.Status.Conditions[1]
	if condition.Status != corev1.ConditionFalse || !condition.LastTransitionTime.Time.Equal(noon.Add(time.Hour)) {
		t.Errorf("%+v", condition)
	}
}

// Two conditions of one type are refused by the API server: nothing would be written any more.
func TestTwoProbesOfOneConditionOfWhichOneHasNoResult(t *testing.T) {
	t.Parallel()
	l, both := &life{t: t, pod: pod("a")}, []v1alpha1.PodProbeMarker{marker("m"), marker("n")}
	l.see(both, said(v1alpha1.ProbeSucceeded))
	got := desiredOf(t, l.pod, compile(both...), podprobe.States{"n#idle": state(v1alpha1.ProbeFailed, "busy")}, noon).Conditions
	if len(got) != 1 || got[0].Status != corev1.ConditionFalse || got[0].Message != "busy" {
		t.Errorf("%+v", got)
	}
}
