package podprobe_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/managedfields"
	"github.com/refit-project/refit/probe/podprobe"
)

func TestWhatOthersOwnIsNotOurs(t *testing.T) {
	t.Parallel()
	there := applied(t, pod("a"), podprobe.Fields{Labels: map[string]string{"free": "yes"}})
	others := there.ManagedFields[0]
	others.Manager, others.FieldsV1 = "kubectl", metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:app":{}}}}`)
	there.ManagedFields = append(there.ManagedFields, others, metav1.ManagedFieldsEntry{Manager: managedfields.FieldManager, Operation: "Apply", Subresource: "status"})
	want := managedfields.Owned{Labels: map[string]bool{"free": true}, Annotations: map[string]bool{}, Conditions: map[string]bool{}}
	if diff := cmp.Diff(want, managedfields.OwnedBy(there)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A value may be empty, which is not the same as a key that is missing.
func TestAnEmptyLabelIsWritten(t *testing.T) {
	t.Parallel()
	desired := podprobe.Fields{Labels: map[string]string{"flag": ""}}
	planned := planOf(t, pod("a"), desired, nil)
	if value, there := planned.Apply.Labels["flag"]; !planned.Changed || !there || value != "" || len(planned.Overridden) > 0 {
		t.Errorf("%+v", planned)
	}
	if planned := planOf(t, applied(t, pod("a"), planned.Apply), desired, &desired); planned.Changed {
		t.Errorf("written again: %+v", planned)
	}
}

// The record of what a user has changed stays as it is, and another label has to be written.
func TestAChangeBesideAnOverriddenKeyIsWritten(t *testing.T) {
	t.Parallel()
	there, desired := overriddenPod("one")
	there = applied(t, there, planOf(t, there, desired, &desired).Apply)
	desired.Labels["other"] = "new"
	planned := planOf(t, there, desired, nil)
	if diff := cmp.Diff(map[string]string{"other": "new"}, planned.Apply.Labels); diff != "" || !planned.Changed {
		t.Errorf("changed %t, labels (-want +got):\n%s", planned.Changed, diff)
	}
}

// A kruise-manager may have set the condition before, with the same message.
func TestAConditionOfOthersWithAnotherStatusIsReplaced(t *testing.T) {
	t.Parallel()
	there := pod("a", func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: idle, Status: corev1.ConditionFalse, Message: "said"})
	})
	for status, want := range map[corev1.ConditionStatus]bool{corev1.ConditionTrue: true, corev1.ConditionFalse: false} {
		planned := planOf(t, there, podprobe.Fields{Conditions: []corev1.PodCondition{{Type: idle, Status: status, Message: "said"}}}, nil)
		if planned.Changed != want || len(planned.Apply.Conditions) > 0 != want {
			t.Errorf("%s: %+v", status, planned)
		}
	}
}

func TestAProbeWithoutAConditionSetsItsLabelsAlone(t *testing.T) {
	t.Parallel()
	silent := marker("m", func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes[0].PodConditionType = "" })
	got := desiredOf(t, pod("a"), compile(silent), podprobe.States{"m#idle": state(v1alpha1.ProbeSucceeded, "idle")}, noon)
	want := podprobe.Fields{Labels: map[string]string{"free": "yes"}, Annotations: map[string]string{cost: "-10"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A condition of others may have no time.
func TestAConditionWithoutATimeGetsThatOfTheResult(t *testing.T) {
	t.Parallel()
	there := pod("a", func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: idle, Status: corev1.ConditionTrue})
	})
	got := desiredOf(t, there, compile(marker("m")), podprobe.States{"m#idle": state(v1alpha1.ProbeSucceeded, "idle")}, noon.Add(time.Hour))
	if len(got.Conditions) != 1 || !got.Conditions[0].LastTransitionTime.Time.Equal(noon) {
		t.Errorf("%+v", got.Conditions)
	}
}

// Each result has a value of its own for the deletion cost: which of them is there says what the last result was.
func TestWithoutAResultTheMarksOfTheLastOneStay(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]podprobe.Fields{
		"succeeded": {Labels: map[string]string{"free": "yes"}, Annotations: map[string]string{cost: "-10"}},
		"failed":    {Labels: map[string]string{"busy": "yes"}, Annotations: map[string]string{cost: "10"}},
	} {
		if diff := cmp.Diff(last, desiredOf(t, applied(t, pod("a"), last), compile(marker("m")), podprobe.States{}, noon)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Somebody may have removed the condition, which is still recorded as owned.
func TestAConditionThatHasGoneIsNotKept(t *testing.T) {
	t.Parallel()
	there := applied(t, pod("a"), podprobe.Fields{Conditions: []corev1.PodCondition{{Type: idle, Status: corev1.ConditionTrue}}})
	there.Status.Conditions = nil
	if got := desiredOf(t, there, compile(marker("m")), podprobe.States{}, noon); len(got.Conditions) > 0 {
		t.Errorf("%+v", got.Conditions)
	}
}

func TestPodsWithoutProbesAreNotInANodePodProbe(t *testing.T) {
	t.Parallel()
	other := pod("other", func(p *corev1.Pod) { p.Labels["app"] = "web" })
	spec, omitted := specOf(t, []*corev1.Pod{other, pod("a")}, compile(marker("m")))
	if len(spec.PodProbes) != 1 || spec.PodProbes[0].Name != "a" || len(omitted) > 0 {
		t.Errorf("%+v, left out %v", spec.PodProbes, omitted)
	}
}

func TestAPodHas256Probes(t *testing.T) {
	t.Parallel()
	var markers []v1alpha1.PodProbeMarker
	for _, name := range []string{"a", "b", "c"} {
		markers = append(markers, marker(name, func(m *v1alpha1.PodProbeMarker) {
			m.Spec.Probes = nil
			for i := range v1alpha1.MaxProbesOfMarker {
				m.Spec.Probes = append(m.Spec.Probes, probe(fmt.Sprint("p", i)))
			}
		}))
	}
	spec, _ := specOf(t, []*corev1.Pod{pod("a")}, compile(markers...))
	if len(spec.PodProbes) != 1 || len(spec.PodProbes[0].Probes) != 256 {
		t.Errorf("%d pods", len(spec.PodProbes))
	}
}

func TestPodsThatCannotBeProbedAreNotCounted(t *testing.T) {
	t.Parallel()
	m := marker("m")
	for name, change := range map[string]func(*corev1.Pod){
		"it has ended":          func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		"it is on no node":      func(p *corev1.Pod) { p.Spec.NodeName = "" },
		"it is being deleted":   func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} },
		"it is not initialized": func(p *corev1.Pod) { p.Status.Conditions = nil },
	} {
		if got := podprobe.Status(&m, podprobe.Surroundings{Markers: compile(m), Pods: []*corev1.Pod{pod("a", change), pod("b")}}, noon); got.MatchedPods != 1 {
			t.Errorf("%s: %d pods", name, got.MatchedPods)
		}
	}
}
