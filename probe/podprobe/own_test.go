package podprobe_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/managedfields"
	"github.com/refit-project/refit/probe/podprobe"
)

// What others have written, or we by another way, is not ours to remove.
func TestOnlyWhatWasAppliedToTheStatusIsOwned(t *testing.T) {
	t.Parallel()
	own := metav1.ManagedFieldsEntry{Manager: managedfields.FieldManager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status"}
	for name, tt := range map[string]struct {
		change func(*metav1.ManagedFieldsEntry)
		want   bool
	}{
		"ours":                   {func(*metav1.ManagedFieldsEntry) {}, true},
		"of another manager":     {func(e *metav1.ManagedFieldsEntry) { e.Manager = "kubectl" }, false},
		"an update":              {func(e *metav1.ManagedFieldsEntry) { e.Operation = metav1.ManagedFieldsOperationUpdate }, false},
		"of another subresource": {func(e *metav1.ManagedFieldsEntry) { e.Subresource = "" }, false},
	} {
		entry := own
		if tt.change(&entry); managedfields.OwnEntry(entry) != tt.want {
			t.Errorf("%s: owned %t", name, !tt.want)
		}
	}
}

// On a virtual node, a condition is the result of the markers that select the pod, and of no other.
func TestConditionIsAResultOfTheMarkersThatSelectThePod(t *testing.T) {
	t.Parallel()
	there := pod("a", func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: idle, Status: corev1.ConditionTrue})
	})
	other := marker("other", func(m *v1alpha1.PodProbeMarker) { m.Spec.Selector.MatchLabels["app"] = "web" })
	silent := marker("silent", func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes[0].PodConditionType = "" })
	states := podprobe.StatesOfConditions(there, compile(marker("m"), other, silent))
	if len(states) != 1 || states["m#idle"].State != v1alpha1.ProbeSucceeded {
		t.Errorf("%+v", states)
	}
}

func TestNamesOfProbesTellTheirMarker(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{podprobe.FullName("m", "idle"): "m", "m#a#b": "m", "m": ""} {
		if got, ok := podprobe.MarkerOf(name); ok != (want != "") || ok && got != want {
			t.Errorf("%s: marker %q, %t", name, got, ok)
		}
	}
}

// A status has the results of many pods.
func TestStatesAreThoseOfThePod(t *testing.T) {
	t.Parallel()
	named := func(name string, s v1alpha1.ProbeState) v1alpha1.ContainerProbeState {
		one := state(s, "")
		one.Name = name
		return one
	}
	status := v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{
		{UID: "another", ProbeStates: []v1alpha1.ContainerProbeState{named("m#idle", v1alpha1.ProbeFailed)}},
		{UID: "uid-a", ProbeStates: []v1alpha1.ContainerProbeState{named("m#idle", v1alpha1.ProbeSucceeded), named("m#full", v1alpha1.ProbeUnknown)}},
	}}
	states := podprobe.StatesOf(pod("a"), status)
	if len(states) != 2 || states["m#idle"].State != v1alpha1.ProbeSucceeded || states["m#full"].State != v1alpha1.ProbeUnknown {
		t.Errorf("%+v", states)
	}
	if states := podprobe.StatesOf(pod("b"), status); states != nil {
		t.Errorf("of a pod without results: %+v", states)
	}
}
