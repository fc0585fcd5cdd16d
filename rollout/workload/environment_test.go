package workload_test

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// track has the environment of container app refer to a label.
func track(t *corev1.PodTemplateSpec) {
	from := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['track']"}}
	t.Spec.Containers[0].Env, t.Labels["track"] = []corev1.EnvVar{{Name: "TRACK", ValueFrom: from}}, "stable"
}

func canary(t *corev1.PodTemplateSpec) { t.Labels["track"] = "canary" }

func TestContainersWhoseEnvironmentRefersToAChangedLabelAreRestarted(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 3)
		w.edit(track)
		w.rounds(30)
		w.created, w.worst, w.restarts = 0, 0, map[string]int{}
		before := w.uids()
		w.edit(canary)
		w.rounds(60)
		if w.progressing() != "True Completed" || !maps.Equal(before, w.uids()) || w.worst != 1 {
			t.Errorf("%s: %s, %d pods created, %d not ready at a time", kind, w.progressing(), w.created, w.worst)
		}
		for name, pod := range w.pods {
			if got := w.tracks[pod.Status.ContainerStatuses[0].ContainerID]; got != "canary" || w.restarts[name] != 1 {
				t.Errorf("%s: %s runs with %s, %d restarts", kind, name, got, w.restarts[name])
			}
			if got := w.tracks[pod.Status.ContainerStatuses[1].ContainerID]; got != "stable" {
				t.Errorf("%s: container log of %s was restarted", kind, name)
			}
		}
	}
}

func TestFailedRestartForANewEnvironmentStopsTheUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "Deployment", 3)
	w.edit(track)
	w.rounds(30)
	w.bad["restarts"] = true
	w.edit(canary)
	w.rounds(30)
	if w.progressing() != "False PodsFailed" || len(w.policy.Status.Failures) != 1 || w.policy.Status.Failures[0].Reason != "DeadlineExceeded" {
		t.Errorf("%s, %v", w.progressing(), w.policy.Status.Failures)
	}
}

func TestNewEnvironmentSurvivesADeathBeforeAnyWrite(t *testing.T) {
	t.Parallel()
	for dieAt, writes := 0, 1; dieAt <= writes; dieAt++ {
		w := newWorld(t, "StatefulSet", 2)
		w.pulling()
		w.edit(track)
		w.rounds(30)
		w.restarts, w.writes, w.dieAt = map[string]int{}, 0, dieAt
		before := w.uids()
		w.edit(canary)
		w.rounds(40)
		if dieAt == 0 {
			writes = w.writes
		}
		if w.progressing() != "True Completed" || !maps.Equal(before, w.uids()) || w.restarts["web-0"] != 1 || w.restarts["web-1"] != 1 {
			t.Errorf("death before write %d of %d: %s, restarts %v", dieAt, writes, w.progressing(), w.restarts)
		}
	}
}

// Such annotations replace the pods of a workload without a policy.
func TestAnUpdateThatRestartsNothingIsReportedOnce(t *testing.T) {
	t.Parallel()
	checksum := func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{"checksum/config": "2"} }
	for name, tt := range map[string]struct {
		change func(*corev1.PodTemplateSpec)
		want   string
	}{
		"an annotation":                  {checksum, "checksum/config"},
		"a label":                        {func(t *corev1.PodTemplateSpec) { t.Labels["zone"] = "b" }, "zone"},
		"a label that a variable has":    {canary, ""},
		"an annotation and such a label": {func(t *corev1.PodTemplateSpec) { checksum(t); canary(t) }, ""},
		"an annotation and an image":     {func(t *corev1.PodTemplateSpec) { checksum(t); image("app:2")(t) }, ""},
	} {
		w := newWorld(t, "Deployment", 2)
		w.edit(track)
		w.rounds(30)
		w.edit(tt.change)
		var said []string
		for range 40 {
			if w.rounds(1); w.last.NothingRestarted != "" {
				said = append(said, w.last.NothingRestarted)
			}
		}
		if got := strings.Join(said, " "); w.progressing() != "True Completed" || got != tt.want {
			t.Errorf("%s: %s, said %q, want %q", name, w.progressing(), got, tt.want)
		}
	}
}
