package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/lifecycle"
	"github.com/refit-project/refit/internal/cache/trim"
)

// cached returns what a cache keeps of a pod for the lifecycle of requests.
func cached(pod *corev1.Pod) *corev1.Pod {
	if pod == nil {
		return nil
	}
	return trim.NewPods(trim.Part{Keep: lifecycle.Keep}).Of(pod.DeepCopy())
}

// next decides, and checks that the decision is the same with the pod as a cache has it.
func next(t *testing.T, request *v1beta1.ContainerRecreateRequest, observed lifecycle.Observation, now time.Time) lifecycle.Decision {
	t.Helper()
	want := lifecycle.Next(request, observed, now)
	observed.Pod = cached(observed.Pod)
	got := lifecycle.Next(request, observed, now)
	checkSame(t, &want, &got)
	return want
}

func beginReadiness(t *testing.T, pod *corev1.Pod, now time.Time) (*corev1.PodStatus, bool) {
	t.Helper()
	status, begun := lifecycle.BeginReadiness(pod, now)
	got, _ := lifecycle.BeginReadiness(cached(pod), now)
	checkSame(t, &lifecycle.Decision{Pod: status}, &lifecycle.Decision{Pod: got})
	return status, begun
}

// checkSame compares decisions. Of the status of a pod only conditions are changed.
func checkSame(t *testing.T, want, got *lifecycle.Decision) {
	t.Helper()
	conditions := cmp.Transformer("conditions", func(status corev1.PodStatus) []corev1.PodCondition { return status.Conditions })
	if diff := cmp.Diff(want, got, conditions); diff != "" {
		t.Errorf("with the cached pod (-pod +cached):\n%s", diff)
	}
}
