// Package crrtest has the requests and the pod that the tests of crr and its subpackages share. Only tests import it.
package crrtest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// AdmittedAt is when the requests of the tests are admitted.
var AdmittedAt = time.Date(2026, 11, 21, 10, 0, 0, 123456789, time.UTC)

// UserRequest is what a user writes: a pod and the names of its containers.
func UserRequest(containers ...string) *v1beta1.ContainerRecreateRequest {
	r := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "shop"}}
	r.Spec.PodName = "web"
	for _, name := range containers {
		r.Spec.Containers = append(r.Spec.Containers, v1beta1.ContainerRecreateRequestContainer{Name: name})
	}
	return r
}

// WebPod returns a pod with running containers app and log, native sidecar mesh, and completed init container setup.
func WebPod() *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "uid-1"},
		Spec: corev1.PodSpec{
			NodeName: "node-1", RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(7)),
			Containers:     []corev1.Container{{Name: "app"}, {Name: "log"}},
			InitContainers: []corev1.Container{{Name: "setup"}, {Name: "mesh", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}},
			EphemeralContainers: []corev1.EphemeralContainer{
				{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}},
			},
		},
	}
	pod.Status.Phase = corev1.PodRunning
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "app", ContainerID: "containerd://app1", RestartCount: 3, State: running}, {Name: "log", ContainerID: "containerd://log1", State: running},
	}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{
		{Name: "setup", ContainerID: "containerd://setup1"}, {Name: "mesh", ContainerID: "containerd://mesh1", State: running},
	}
	return pod
}

// StatusContext returns what admission records about an instance of a containerd container.
func StatusContext(id string, restarts int32) *v1beta1.ContainerRecreateRequestContainerContext {
	return &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "containerd://" + id, RestartCount: restarts}
}
