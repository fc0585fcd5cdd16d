package inpod

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

// forced has the request restart the container that runs, whichever it is.
func (w *world) forced() {
	w.request.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{ForceRecreate: true}
}

// restarted has the container restart before the sidecar looks at the request.
func (w *world) restarted() {
	w.crash()
	time.Sleep(2 * time.Second)
}

func TestForcedRequestStopsOneInstance(t *testing.T) {
	t.Parallel()
	const refusal = "container app: it has been restarted since the request was created"
	whole := []time.Duration{2 * time.Minute}
	for name, tt := range map[string]struct {
		change         func(*world)
		periods        []time.Duration
		result, reason string
		message        string // part of the status's
		signals        []string
	}{
		"the CRD keeps IDs": {change: func(*world) {}, periods: whole, result: "succeeded", reason: crr.ReasonSucceeded, signals: []string{"SIGTERM 1"}},
		"the CRD keeps IDs, restarted before": {change: func(w *world) { w.restarted() }, periods: whole,
			result: "succeeded", reason: crr.ReasonSucceeded, signals: []string{"SIGTERM 2"}},
		"the CRD drops IDs": {change: func(w *world) { w.dropsIDs = true }, periods: whole,
			result: "succeeded", reason: crr.ReasonSucceeded, signals: []string{"SIGTERM 1"}},
		"the CRD drops IDs, and the sidecar restarts before the pod's status shows the next": {change: func(w *world) { w.dropsIDs = true },
			periods: []time.Duration{800 * time.Millisecond, time.Minute}, result: "succeeded", reason: crr.ReasonSucceeded, signals: []string{"SIGTERM 1"}},
		"the CRD drops IDs, the next is never ready, and the sidecar restarts twice": {change: func(w *world) {
			w.dropsIDs, w.pod.Status.ContainerStatuses[0].Ready = true, false
			w.request.CreationTimestamp, w.request.Spec.ActiveDeadlineSeconds = metav1.Now(), new(int64(60))
		}, periods: []time.Duration{800 * time.Millisecond, 15 * time.Second, time.Minute},
			result: "failed", reason: crr.ReasonDeadlineExceeded, signals: []string{"SIGTERM 1"}},
		"the CRD drops IDs, and the sidecar restarts within the grace period": {change: func(w *world) { w.dropsIDs, w.stubborn = true, true },
			periods: []time.Duration{5 * time.Second, time.Minute}, result: "succeeded", reason: crr.ReasonSucceeded, signals: []string{"SIGTERM 1", "SIGTERM 1", "SIGKILL 1"}},
		"the CRD drops IDs, restarted before": {change: func(w *world) {
			w.dropsIDs = true
			w.restarted()
		}, periods: whole, result: "failed", reason: crr.ReasonNotPossibleHere, message: refusal},
		"the CRD drops IDs, it crashes as the request is taken": {change: func(w *world) {
			w.dropsIDs = true
			w.crash()
		}, periods: whole, result: "failed", reason: crr.ReasonNotPossibleHere, message: refusal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.forced()
				tt.change(w)
				w.play(t, tt.periods...)
				time.Sleep(2 * time.Second) // kubelet
				w.check(t, tt.result, tt.reason, tt.signals...)
				if state := w.status().ContainerRecreateStates[0]; w.dropsIDs && tt.reason == crr.ReasonDeadlineExceeded && state.Phase != v1beta1.ContainerRecreateRequestRecreating {
					t.Errorf("after the deadline %+v, want Recreating as kruise-daemon leaves it", state)
				}
				if message := w.status().Message; !strings.Contains(message, tt.message) {
					t.Errorf("message %q, want %q", message, tt.message)
				}
			})
		})
	}
}

// OpenKruise up to 1.9 stores no conditions, so since when the manager is waited for is known to the sidecar alone.
func TestDrainIsNotWaitedForWithoutEndUnderOpenKruises19CRD(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.alpha = true
		w.pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}}
		w.request.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: new(int64(5))}
		began := time.Now()
		w.play(t, 2*time.Minute)
		status := w.status()
		if !strings.Contains(status.Message, "the manager did not make the pod not ready within 1 minute") || status.CompletionTime == nil {
			t.Fatalf("%+v", status)
		}
		if took := status.CompletionTime.Sub(began); took < time.Minute || took > time.Minute+2*time.Second {
			t.Errorf("ended after %s", took)
		}
		w.check(t, "failed", "") // the reason is in a condition
	})
}
