package e2e_test

import (
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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
// became of them into an annotation, and it knows no conditions, so the manager adds them. The request is one that it has
// begun itself, or one that a refit-daemon has begun that it has replaced on the node.
func TestHandOffToKruiseDaemon(t *testing.T) {
	t.Parallel()
	for name, replaces := range map[string]bool{"begun by kruise-daemon": false, "begun by refit-daemon": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			pod := s.nodeWithoutDaemon()
			s.ask("r", "web/app")
			if replaces {
				s.beginAsRefitDaemon("r")
			} else {
				s.update("r", "phase Recreating", func(r *v1alpha1.ContainerRecreateRequest) { r.Status.Phase = "Recreating" })
			}
			s.report(pod, "containerd://0002", 1)
			if replaces {
				s.kruiseDaemonOn(pod.Spec.NodeName)
			}
			s.completeAsKruiseDaemon("r", v1beta1.ContainerStatusSnapshot{Name: "app", Ready: true, RestartCount: 1, ContainerID: "containerd://0002"})
			s.run("wait", "--for=condition=Succeeded", "crr/r", "--timeout=60s")
			s.succeeded("r")
			s.check(s.Delete(t.Context(), pod, client.GracePeriodSeconds(0)), "delete pod")
		})
	}
}

// completeAsKruiseDaemon waits for the snapshot of the pod's status, by which a kruise-daemon learns that the next instance
// runs, and then ends the request.
func (s *fixture) completeAsKruiseDaemon(name string, want v1beta1.ContainerStatusSnapshot) {
	s.t.Helper()
	var snapshot []v1beta1.ContainerStatusSnapshot
	s.await("snapshot of the pod's status", func(ctx context.Context) (bool, error) {
		r := &v1alpha1.ContainerRecreateRequest{}
		if err := s.Get(ctx, s.key(name), r); err != nil {
			return false, err
		}
		text := r.Annotations[v1beta1.AnnotationSyncContainerStatuses]
		if text == "" {
			return false, nil
		}
		return true, json.Unmarshal([]byte(text), &snapshot)
	})
	if len(snapshot) != 1 || snapshot[0] != want {
		s.t.Errorf("snapshot %+v", snapshot)
	}
	s.update(name, "phase Completed", func(r *v1alpha1.ContainerRecreateRequest) {
		r.Status.Phase, r.Status.CompletionTime = "Completed", new(metav1.Now())
		r.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: "Succeeded", IsKilled: true}}
	})
}

// update changes the status of the request as a client of v1alpha1 that retries when somebody else has written.
func (s *fixture) update(name, what string, change func(*v1alpha1.ContainerRecreateRequest)) {
	s.t.Helper()
	s.await(what, func(ctx context.Context) (bool, error) {
		r := &v1alpha1.ContainerRecreateRequest{}
		if err := s.Get(ctx, s.key(name), r); err != nil {
			return false, err
		}
		change(r)
		return s.Status().Update(ctx, r) == nil, nil
	})
}

// beginAsRefitDaemon writes what a refit-daemon has written when it has stopped the container.
func (s *fixture) beginAsRefitDaemon(name string) {
	s.t.Helper()
	s.await("the request to be begun", func(ctx context.Context) (bool, error) {
		r := &request{}
		if err := s.Get(ctx, s.key(name), r); err != nil {
			return false, err
		}
		r.Status.Phase = v1beta1.ContainerRecreateRequestRecreating
		r.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{
			{Name: "app", Phase: v1beta1.ContainerRecreateRequestRecreating, IsKilled: true, ContainerID: "containerd://0001"},
		}
		meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{
			Type: v1beta1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: "Accepted", Message: "played by the test",
		})
		return s.Status().Update(ctx, r) == nil, nil
	})
}

// kruiseDaemonOn makes the pod of a kruise-daemon on a node that no machine is behind, and reports it as ready.
func (s *fixture) kruiseDaemonOn(node string) {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	// Pods elsewhere are not taken for it. The namespace stays: other tests use it at the same time.
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kruise-system"}}
	if err := s.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		s.t.Fatalf("make namespace %s: %v", namespace.Name, err)
	}
	s.await("service account default of "+namespace.Name, func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, client.ObjectKey{Namespace: namespace.Name, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
	pod := s.podOf("kruise-daemon-"+s.namespace, shell("daemon", obedient))
	pod.Namespace, pod.Labels, pod.Spec.NodeName = namespace.Name, map[string]string{"control-plane": "daemon"}, node
	s.check(s.Create(s.t.Context(), pod), "make pod of kruise-daemon")
	s.t.Cleanup(func() {
		if err := s.Delete(ctx, pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			s.t.Errorf("delete pod of kruise-daemon: %v", err)
		}
	})
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	s.check(s.Status().Update(s.t.Context(), pod), "report that kruise-daemon is ready")
}
