package workload_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/kubelet"
)

// nodeDown returns a DaemonSet of 10 pods. The node of the one that is updated first has been down for an hour.
func nodeDown(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, "DaemonSet", 10)
	w.down = map[string]bool{"web-9": true}
	pod := w.pods["web-9"]
	pod.Status.ObservedGeneration = pod.Generation
	ready := kubelet.Condition(&pod.Status, corev1.PodReady)
	ready.Status, ready.LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(w.now.Add(-time.Hour))
	w.policy.Spec.FailurePolicy = v1alpha1.UpdateFailureUndo
	return w
}

// back lets a node come back: kubelet first observes the update of the pod, and then replaces its container. If only the network of the
// node was down, the pod is ready until then.
func (w *world) back(name string, ready bool) {
	w.t.Helper()
	pod := w.pods[name]
	pod.Status.ObservedGeneration = pod.Generation
	if ready {
		w.condition(pod, true)
	}
	w.look(-1)
	app := kubelet.StatusOf(pod, "app")
	ended := &corev1.ContainerStateTerminated{ContainerID: app.ContainerID}
	w.down = nil
	w.kubelet()
	app.LastTerminationState.Terminated = ended
	if w.look(-1); w.policy.Status.FailedPods > 0 {
		w.t.Errorf("when the node is back: %v", w.policy.Status.Failures)
	}
}

func TestNodeThatIsDownDoesNotStopTheUpdateOfADaemonSet(t *testing.T) {
	t.Parallel()
	for _, limit := range []int32{1, 2} {
		w := nodeDown(t)
		w.policy.Spec.MaxUnavailable = new(intstr.FromInt32(limit))
		w.edit(image("app:2"))
		w.rounds(60)
		w.now = w.now.Add(15 * time.Minute)
		w.rounds(5)
		status := w.policy.Status
		if status.UpdatedReadyPods != 9 || status.FailedPods > 0 || w.template().Spec.Containers[0].Image != "app:2" || w.progressing() != "True Updating" {
			t.Errorf("maxUnavailable %d: %d pods are updated, %d have failed, template %s, %s", limit, status.UpdatedReadyPods, status.FailedPods, w.template().Spec.Containers[0].Image, w.progressing())
		}
		if w.worst > int(limit)+1 || w.created > 0 {
			t.Errorf("maxUnavailable %d: %d pods were not ready at a time, with the one whose node is down; %d were created", limit, w.worst, w.created)
		}
		w.back("web-9", limit == 2)
		if w.rounds(10); w.progressing() != "True Completed" || w.unavailable() > 0 {
			t.Errorf("maxUnavailable %d: when the node is back %s, %d pods are not ready", limit, w.progressing(), w.unavailable())
		}
	}
}

func TestStepDoesNotWaitForANodeThatIsDown(t *testing.T) {
	t.Parallel()
	w := nodeDown(t)
	w.policy.Spec.Steps = []v1alpha1.RolloutStep{{Pods: intstr.FromInt32(1), Pause: &v1alpha1.StepPause{}}}
	w.edit(image("app:2"))
	w.rounds(20)
	if w.policy.Status.UpdatedReadyPods != 1 || w.progressing() != "True Step" || w.policy.Status.StepTime == nil {
		t.Errorf("%d pods are updated, %s: %s", w.policy.Status.UpdatedReadyPods, w.progressing(), w.message())
	}
}

// A node that breaks down during the update of its pod is not known from one that the update has broken.
func TestPodWhoseNodeIsDownSinceItsUpdateFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "DaemonSet", 2)
	w.pods["web-0"].Status.ObservedGeneration = 1
	w.edit(image("app:2"))
	w.controller()
	w.look(-1)
	pod := w.pods["web-0"]
	ready := kubelet.Condition(&pod.Status, corev1.PodReady)
	w.down, w.now = map[string]bool{"web-0": true}, w.now.Add(time.Minute)
	ready.Status, ready.LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(w.now)
	w.rounds(1)
	if w.now = w.now.Add(10 * time.Minute); pod.Spec.Containers[0].Image != "app:2" {
		t.Fatalf("images %v", w.images())
	}
	w.rounds(1)
	w.fails(v1alpha1.ReasonNoProgress, "its update has not ended")
}
