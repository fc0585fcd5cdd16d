package why_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/cli/why"
)

func event(name, reason, container, message string, count int32, seconds int) corev1.Event {
	return corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Reason: reason, Message: message, Count: count, LastTimestamp: at(seconds),
		InvolvedObject: corev1.ObjectReference{Namespace: "shop", UID: "u", FieldPath: "spec.containers{" + container + "}"},
	}
}

func TestFailedProbesAreNamed(t *testing.T) {
	t.Parallel()
	p := pod()
	p.Status.ContainerStatuses[0].LastTerminationState.Terminated.StartedAt = at(-60)
	events := []corev1.Event{
		event("a", "Unhealthy", "app", "Readiness probe failed: old", 1, -50), event("b", "Unhealthy", "app", "Readiness probe failed: connection refused", 1, -40),
		event("c", "Unhealthy", "app", "Liveness probe failed: timeout", 3, -10), event("d", "Killing", "app", "Container app failed liveness probe, will be restarted", 1, -9),
		event("e", "Unhealthy", "log", "Startup probe failed: no", 1, -10),
	}
	got := why.Explain(p, nil, []string{"app"})
	why.AddEvents(got, p, events)
	want := []string{
		"Liveness probe failed: timeout (3 times, last at 2026-11-22T11:59:50Z)", "Readiness probe failed: connection refused (at 2026-11-22T11:59:20Z)",
	}
	if diff := cmp.Diff(want, got[0].Probes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.HasSuffix(got[0].Message, "; kubelet stopped it: Container app failed liveness probe, will be restarted") {
		t.Errorf("message %q", got[0].Message)
	}
	// A container that was stopped for its probe earlier was restarted for another reason last.
	p.Status.ContainerStatuses[0].LastTerminationState.Terminated.StartedAt = at(-5)
	got = why.Explain(p, nil, []string{"app"})
	if why.AddEvents(got, p, events); strings.Contains(got[0].Message, "probe") {
		t.Errorf("message %q", got[0].Message)
	}
}

func TestRunShowsFailedProbes(t *testing.T) {
	t.Parallel()
	e := event("a", "Unhealthy", "log", "Readiness probe failed: no", 1, 5)
	var out bytes.Buffer
	if err := why.Run(t.Context(), config(t, &e), &out, "web"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "  probe: Readiness probe failed: no (at 2026-11-22T12:00:05Z)\n") {
		t.Error(out.String())
	}
}
