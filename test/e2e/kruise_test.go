package e2e_test

import (
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// nodeWithoutDaemon makes a Node object that no machine is behind, and a pod that seems to run there.
func (s *fixture) nodeWithoutDaemon() *corev1.Pod {
	s.t.Helper()
	// Without the label kubernetes.io/os no DaemonSet puts a pod there.
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Spec: corev1.NodeSpec{Unschedulable: true}}
	s.check(s.Create(s.t.Context(), node), "make node")
	s.t.Cleanup(func() {
		if err := s.Delete(context.WithoutCancel(s.t.Context()), node); err != nil {
			s.t.Errorf("delete node: %v", err)
		}
	})
	pod := s.podOf("web", shell("app", obedient))
	pod.Spec.NodeName = node.Name
	s.check(s.Create(s.t.Context(), pod), "make pod")
	s.report(pod, "containerd://0001", 0)
	return pod
}

// report plays kubelet.
func (s *fixture) report(pod *corev1.Pod, id string, restarts int32) {
	s.t.Helper()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", ContainerID: id, RestartCount: restarts, Ready: true, Image: image,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}}
	s.check(s.Status().Update(s.t.Context(), pod), "write pod status")
}

func TestDaemonNotRespondingEndsTheRequest(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.nodeWithoutDaemon()
	s.ask("r", "web/app")
	s.failed("r", "DaemonNotResponding", "daemon has not responded for a long time", s.namespace)
}

// TestHandOffToKruiseDaemon plays a kruise-daemon of 1.9 against the manager: it sees no pods, so the manager writes what
// became of them into an annotation, and it knows no conditions, so the manager adds them.
func TestHandOffToKruiseDaemon(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.nodeWithoutDaemon()
	s.ask("r", "web/app")
	// update changes the request as a client of v1alpha1 that retries when somebody else has written.
	update := func(what string, change func(*v1alpha1.ContainerRecreateRequest)) {
		t.Helper()
		s.await(what, func(ctx context.Context) (bool, error) {
			r := &v1alpha1.ContainerRecreateRequest{}
			if err := s.Get(ctx, s.key("r"), r); err != nil {
				return false, err
			}
			change(r)
			return s.Status().Update(ctx, r) == nil, nil
		})
	}
	update("phase Recreating", func(r *v1alpha1.ContainerRecreateRequest) { r.Status.Phase = "Recreating" })
	s.report(pod, "containerd://0002", 1)
	var snapshot []v1beta1.ContainerStatusSnapshot
	s.await("snapshot of the pod's status", func(ctx context.Context) (bool, error) {
		r := &v1alpha1.ContainerRecreateRequest{}
		if err := s.Get(ctx, s.key("r"), r); err != nil {
			return false, err
		}
		text := r.Annotations[v1beta1.AnnotationSyncContainerStatuses]
		if text == "" {
			return false, nil
		}
		return len(text) > 0, json.Unmarshal([]byte(text), &snapshot)
	})
	if len(snapshot) != 1 || snapshot[0] != (v1beta1.ContainerStatusSnapshot{Name: "app", Ready: true, RestartCount: 1, ContainerID: "containerd://0002"}) {
		t.Errorf("snapshot %+v", snapshot)
	}
	update("phase Completed", func(r *v1alpha1.ContainerRecreateRequest) {
		r.Status.Phase, r.Status.CompletionTime = "Completed", new(metav1.Now())
		r.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: "Succeeded", IsKilled: true}}
	})
	s.run("wait", "--for=condition=Succeeded", "crr/r", "--timeout=60s")
	s.succeeded("r")
	s.check(s.Delete(t.Context(), pod, client.GracePeriodSeconds(0)), "delete pod")
}
