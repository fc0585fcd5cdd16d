package control

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/lifecycle"
)

func TestDecisionsAreTheSameForTrimmedPods(t *testing.T) {
	t.Parallel()
	draining := storedRequest(t)
	draining.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(5))
	draining.Finalizers = []string{"crr.apps.kruise.io/unready-acquired"}
	taken(draining)
	foreign := storedRequest(t)
	taken(foreign)
	foreign.Status.Conditions = nil

	whole := testPod()
	whole.Annotations = map[string]string{"big": string(make([]byte, 1<<10))}
	whole.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	whole.Status.ContainerStatuses[0] = corev1.ContainerStatus{
		Name: "app", ContainerID: "containerd://app2", RestartCount: 1, Ready: true, Image: "nginx",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon)}},
	}
	small := trimmed(t, whole)
	if small.Annotations["big"] != "" || small.ManagedFields != nil || small.Spec.Containers[0].Image != "" || small.Status.ContainerStatuses[0].Image != "" {
		t.Errorf("not trimmed: %+v", small)
	}
	for _, request := range []*crr.Request{storedRequest(t), draining, foreign} {
		want := lifecycle.Next(request, lifecycle.Observation{Pod: whole}, noon)
		got := lifecycle.Next(request, lifecycle.Observation{Pod: small}, noon)
		if want.Pod != nil && got.Pod != nil {
			want.Pod, got.Pod = &corev1.PodStatus{Conditions: want.Pod.Conditions}, &corev1.PodStatus{Conditions: got.Pod.Conditions}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("decision (-whole +trimmed):\n%s", diff)
		}
	}
}

// A pod that is too large to be kept as a whole is drained, and made ready again, as any other.
func TestReadinessOfPodsThatAreTooLarge(t *testing.T) {
	t.Parallel()
	draining := storedRequest(t)
	draining.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(5))
	draining.Finalizers = []string{"crr.apps.kruise.io/unready-acquired"}
	taken(draining)
	whole := testPod()
	whole.Status.Conditions = append(whole.Status.Conditions, corev1.PodCondition{Type: v1beta1.ReadinessGateKruisePodReady, Status: corev1.ConditionTrue, Message: "[]"})
	for n := range 40 {
		name := fmt.Sprintf("sidecar-%d", n)
		whole.Spec.Containers = append(whole.Spec.Containers, corev1.Container{Name: name, Image: name})
		whole.Status.ContainerStatuses = append(whole.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, ContainerID: "containerd://" + name})
	}
	small := trimmed(t, whole)
	if len(small.Spec.Containers) > 0 {
		t.Fatalf("kept as a whole: %d bytes", small.Size())
	}
	want, got := lifecycle.Next(draining, lifecycle.Observation{Pod: whole}, noon), lifecycle.Next(draining, lifecycle.Observation{Pod: small}, noon)
	if want.Pod == nil || got.Pod == nil {
		t.Fatalf("the condition is not written: %+v, of the trimmed pod %+v", want, got)
	}
	if diff := cmp.Diff(conditionOf(want.Pod), conditionOf(got.Pod)); diff != "" {
		t.Errorf("condition (-whole +trimmed):\n%s", diff)
	}
}

func conditionOf(status *corev1.PodStatus) *corev1.PodCondition {
	i := slices.IndexFunc(status.Conditions, func(c corev1.PodCondition) bool { return c.Type == v1beta1.ReadinessGateKruisePodReady })
	if i < 0 {
		return nil
	}
	return &status.Conditions[i]
}
