package podprobe_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/probe/podprobe"
)

// Each of these causes a write, although nothing else changes.
func TestWhatIsNotDesiredAnyMoreIsRemoved(t *testing.T) {
	t.Parallel()
	for name, carried := range map[string]podprobe.Fields{
		"a label":       {Labels: map[string]string{"free": "yes"}},
		"an annotation": {Annotations: map[string]string{cost: "10"}},
		"a condition":   {Conditions: []corev1.PodCondition{{Type: idle, Status: corev1.ConditionTrue}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			planned := planOf(t, applied(t, pod("a"), carried), podprobe.Fields{}, nil)
			if !planned.Changed || !planned.Apply.Empty() {
				t.Errorf("changed %t, to apply %+v", planned.Changed, planned.Apply)
			}
		})
	}
}

// overriddenPod is a pod of which a user has changed labels that were set to "no", and what is desired of it.
func overriddenPod(labels ...string) (*corev1.Pod, podprobe.Fields) {
	desired := podprobe.Fields{Labels: map[string]string{}}
	there := pod("a")
	for _, label := range labels {
		there.Labels[label], desired.Labels[label] = "by a user", "no"
	}
	return there, desired
}

func TestOverriddenKeysAreNamedInOrder(t *testing.T) {
	t.Parallel()
	labels := make([]string, 0, 20)
	for i := range cap(labels) {
		labels = append(labels, fmt.Sprintf("label-%02d", i))
	}
	there, desired := overriddenPod(labels...)
	planned := planOf(t, there, desired, &desired)
	if diff := cmp.Diff(labels, planned.Overridden); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The record of what others have changed forgets a key that no probe sets any more.
func TestRecordOfOverriddenKeysFollowsTheProbes(t *testing.T) {
	t.Parallel()
	const record = v1alpha1.AnnotationOverridden
	there, desired := overriddenPod("one", "two")
	there = applied(t, there, planOf(t, there, desired, &desired).Apply)
	if again := planOf(t, there, desired, nil); again.Changed {
		t.Errorf("a second write for the same: %+v", again)
	}
	delete(desired.Labels, "two")
	planned := planOf(t, there, desired, nil)
	if text := planned.Apply.Annotations[record]; !planned.Changed || !strings.Contains(text, "one") || strings.Contains(text, "two") {
		t.Errorf("changed %t, recorded %s", planned.Changed, text)
	}
}

// A condition is not written again for other times alone.
func TestTimesOfAConditionStay(t *testing.T) {
	t.Parallel()
	before := corev1.PodCondition{
		Type: idle, Status: corev1.ConditionTrue, Reason: podprobe.ReasonProbeSucceeded, Message: "idle",
		LastProbeTime: metav1.NewTime(noon), LastTransitionTime: metav1.NewTime(noon),
	}
	now := before
	now.LastProbeTime = metav1.NewTime(noon.Add(time.Minute))
	planned := planOf(t, applied(t, pod("a"), podprobe.Fields{Conditions: []corev1.PodCondition{before}}), podprobe.Fields{Conditions: []corev1.PodCondition{now}}, nil)
	if diff := cmp.Diff([]corev1.PodCondition{before}, planned.Apply.Conditions); diff != "" || planned.Changed {
		t.Errorf("changed %t, conditions (-want +got):\n%s", planned.Changed, diff)
	}
}

// While a probe has no result, what it has set stays; a condition of others is not taken over.
func TestConditionOfOthersIsNotKept(t *testing.T) {
	t.Parallel()
	there := pod("a", func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: idle, Status: corev1.ConditionTrue})
	})
	if got := desiredOf(t, there, compile(marker("m")), podprobe.States{}, noon); len(got.Conditions) > 0 {
		t.Errorf("conditions %+v", got.Conditions)
	}
}

// Both are False; only the reason tells that the new instance has no result yet.
func TestReasonOfAConditionIsWritten(t *testing.T) {
	t.Parallel()
	failed := podprobe.Fields{Conditions: []corev1.PodCondition{{Type: idle, Status: corev1.ConditionFalse, Reason: podprobe.ReasonProbeFailed, Message: "late"}}}
	unknown := podprobe.Fields{Conditions: []corev1.PodCondition{{Type: idle, Status: corev1.ConditionFalse, Reason: podprobe.ReasonProbeUnknown, Message: "late"}}}
	planned := planOf(t, applied(t, pod("a"), failed), unknown, nil)
	if diff := cmp.Diff(unknown.Conditions, planned.Apply.Conditions); diff != "" || !planned.Changed {
		t.Errorf("changed %t, conditions (-want +got):\n%s", planned.Changed, diff)
	}
}

// A daemon may say why there is no result, and the API refuses a condition without a time.
func TestConditionOfAnUnknownResult(t *testing.T) {
	t.Parallel()
	got := desiredOf(t, pod("a"), compile(marker("m")), podprobe.States{"m#idle": {State: v1alpha1.ProbeUnknown, Message: "no connection"}}, noon.Add(time.Millisecond))
	want := []corev1.PodCondition{{
		Type: idle, Status: corev1.ConditionFalse, Reason: podprobe.ReasonProbeUnknown, Message: "no connection", LastTransitionTime: metav1.NewTime(noon),
	}}
	if diff := cmp.Diff(want, got.Conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}
