package control

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/test/kit/recorder"
)

// annotationLimit is the API server's own rule.
func annotationLimit(pod *corev1.Pod) error {
	if errs := validation.ValidateAnnotations(pod.Annotations, field.NewPath("metadata", "annotations")); len(errs) > 0 {
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), pod.Name, errs)
	}
	return nil
}

func TestAnOversizedAnnotationDoesNotHoldBackOtherMarkers(t *testing.T) {
	t.Parallel()
	large := gameMarker("large")
	large.Spec.Probes[0].MarkerPolicy[1].Annotations = map[string]string{"large": strings.Repeat("x", 250<<10)}
	others := []*v1alpha1.PodProbeMarker{gameMarker("first"), gameMarker("second")}
	pod := gamePod("a")
	pod.Annotations = map[string]string{"there": strings.Repeat("y", 20<<10)}
	w := newAPIServer(t, testNode(), large, others[0], others[1], pod)
	w.refuse = annotationLimit
	d := newPodDestination(w.api)
	w.report(results("a", v1alpha1.ProbeFailed, "large#idle", "first#idle", "second#idle"))
	same(t, "writes", w.settle(writing{d}, "shop", "a"), "apply status a", "apply status a")
	is := w.podNamed("a")
	for _, label := range []string{"large", "first", "second"} {
		if is.Labels[label] != "busy" {
			t.Errorf("label %s: %q", label, is.Labels[label])
		}
	}
	if is.Annotations["cost"] != "1" || is.Annotations["large"] != "" || len(is.Status.Conditions) != 5 {
		t.Errorf("annotation cost %q, %d conditions", is.Annotations["cost"], len(is.Status.Conditions))
	}
	event := recorder.Next(w.events)
	for _, words := range []string{"Warning ProbeResultRefused", "annotation large:", "Too long"} {
		if !strings.Contains(event, words) {
			t.Errorf("event %.600q lacks %q", event, words)
		}
	}

	flipped := results("a", v1alpha1.ProbeSucceeded, "first#idle")
	flipped.ProbeStates = append(flipped.ProbeStates, results("a", v1alpha1.ProbeFailed, "large#idle", "second#idle").ProbeStates...)
	w.report(flipped)
	same(t, "writes for a flip meanwhile", w.settle(writing{d}, "shop", "a"), "apply status a")
	now := noon.Add(refusedPause)
	w.now = func() time.Time { return now }
	same(t, "writes of the next attempt", w.settle(writing{d}, "shop", "a"), "apply status a", "apply status a")
	if event := recorder.Next(w.events); event != "" {
		t.Errorf("a second event %.200q", event)
	}
	w.refuse, now = nil, now.Add(refusedPause)
	w.settle(writing{d}, "shop", "a")
	if got := w.podNamed("a").Annotations["large"]; len(got) != 250<<10 {
		t.Errorf("once there is room, the annotation has %d bytes", len(got))
	}
}

func TestARefusedLabelIsReported(t *testing.T) {
	t.Parallel()
	markers := []string{"a", "b", "c", "d", "e", "f", "g"}
	w := newAPIServer(t, testNode(), gamePod("a"))
	var full []string
	for _, name := range markers {
		if err := w.Create(t.Context(), gameMarker(name)); err != nil {
			t.Fatal(err)
		}
		full = append(full, name+"#idle")
	}
	w.refuse = func(pod *corev1.Pod) error {
		for _, name := range []string{"c", "f"} {
			if _, ok := pod.Labels[name]; ok {
				return apierrors.NewForbidden(corev1.Resource("pods"), pod.Name, fmt.Errorf("label %s is the platform's", name))
			}
		}
		return nil
	}
	d := newPodDestination(w.api)
	w.report(results("a", v1alpha1.ProbeSucceeded, full...))
	w.settle(writing{d}, "shop", "a")
	is := w.podNamed("a")
	for _, name := range markers {
		if want := name != "c" && name != "f"; (is.Labels[name] == "idle") != want {
			t.Errorf("label %s: %q", name, is.Labels[name])
		}
	}
	if event := recorder.Next(w.events); !strings.Contains(event, "label c, label f") || !strings.Contains(event, "is the platform's") {
		t.Errorf("event %q", event)
	}
	w.report(results("a", v1alpha1.ProbeFailed, full...))
	w.settle(writing{d}, "shop", "a")
	if is := w.podNamed("a"); is.Labels["a"] != "busy" || is.Labels["c"] != "" {
		t.Errorf("labels after a flip: %v", is.Labels)
	}
}

func TestWhatIsRefusedWhateverThePodGetsIsAnErrorAndOneEvent(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), gameMarker("m"), gamePod("a"))
	attempts := 0
	w.refuse = func(pod *corev1.Pod) error {
		attempts++
		return apierrors.NewForbidden(corev1.Resource("pods"), pod.Name, errors.New("no rights"))
	}
	d := newPodDestination(w.api)
	w.report(results("a", v1alpha1.ProbeSucceeded, "m#idle"))
	for try := range 2 {
		_, err := d.Write(t.Context(), types.NamespacedName{Namespace: "shop", Name: "a"})
		if err == nil || !strings.Contains(err.Error(), "no rights") || attempts != 2*(try+1) {
			t.Errorf("try %d, %d attempts: %v", try+1, attempts, err)
		}
	}
	if event := recorder.Next(w.events); !strings.Contains(event, "Warning ProbeResultRefused") || !strings.Contains(event, "all results") || !strings.Contains(event, "no rights") {
		t.Errorf("event %q", event)
	}
	if event := recorder.Next(w.events); event != "" {
		t.Errorf("a second event %q", event)
	}
	w.refuse = nil
	w.settle(writing{d}, "shop", "a")
	if got := w.podNamed("a").Labels["m"]; got != "idle" {
		t.Errorf("label %q when it is accepted again", got)
	}
}

// Each state has a label that is refused: the refusal of one is still known after the refusal of the other.
func TestRefusalsOfTwoStatesAreRememberedTogether(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), gameMarker("m"), gamePod("a"))
	attempts := 0
	w.refuse = func(pod *corev1.Pod) error {
		attempts++
		if _, ok := pod.Labels["m"]; ok {
			return apierrors.NewForbidden(corev1.Resource("pods"), pod.Name, errors.New("label m is the platform's"))
		}
		return nil
	}
	now := noon
	w.now = func() time.Time { return now }
	d := newPodDestination(w.api)
	flip := func(state v1alpha1.ProbeState, want int) {
		t.Helper()
		attempts, now = 0, now.Add(time.Minute)
		w.report(results("a", state, "m#idle"))
		w.settle(writing{d}, "shop", "a")
		if attempts != want {
			t.Errorf("%s: %d requests, want %d", state, attempts, want)
		}
	}
	flip(v1alpha1.ProbeSucceeded, 3) // refused, a dry run without the label, and what is left
	flip(v1alpha1.ProbeFailed, 5)    // the same, and two more to find out which of two it is
	for len(w.events.Events) > 0 {
		recorder.Next(w.events)
	}
	for range 2 {
		flip(v1alpha1.ProbeSucceeded, 1)
		flip(v1alpha1.ProbeFailed, 1)
	}
	flip(v1alpha1.ProbeSucceeded, 3) // five minutes later it is tried again
	if event := recorder.Next(w.events); event != "" {
		t.Errorf("another event %q", event)
	}
}

// A label that was refused, was taken later, and is refused once more is reported once more.
func TestALabelThatIsRefusedOnceMoreIsReportedOnceMore(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), gameMarker("a"), gameMarker("b"), gamePod("p"))
	now, platforms := noon, ""
	w.now = func() time.Time { return now }
	w.refuse = func(pod *corev1.Pod) error {
		if key, value, _ := strings.Cut(platforms, "="); pod.Labels[key] == value && value != "" {
			return apierrors.NewForbidden(corev1.Resource("pods"), pod.Name, errors.New("it is the platform's"))
		}
		return nil
	}
	d := newPodDestination(w.api)
	for _, step := range []struct {
		a, b      v1alpha1.ProbeState
		platforms string // label that is refused, with its value
		event     string
	}{
		{v1alpha1.ProbeSucceeded, v1alpha1.ProbeSucceeded, "a=idle", "label a"},
		{v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed, "b=busy", "label b"},
		{v1alpha1.ProbeFailed, v1alpha1.ProbeFailed, "", ""},
		{v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed, "a=idle", "label a"},
	} {
		platforms, now = step.platforms, now.Add(refusedPause)
		status := results("p", step.a, "a#idle")
		status.ProbeStates = append(status.ProbeStates, results("p", step.b, "b#idle").ProbeStates...)
		w.report(status)
		w.settle(writing{d}, "shop", "p")
		event := recorder.Next(w.events)
		if (step.event == "") != (event == "") || !strings.Contains(event, step.event) {
			t.Errorf("%+v: event %q", step, event)
		}
	}
}
