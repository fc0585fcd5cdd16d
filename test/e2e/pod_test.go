package e2e_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// shell is a container that runs a script.
func shell(name, script string) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sh", "-c", script},
		VolumeMounts: []corev1.VolumeMount{{Name: "shared", MountPath: "/shared"}},
	}
}

// serving is a script that serves over HTTP whether it is ready, and goes on with another one. Each exec probe starts four processes of
// the runtime: a third of a second of CPU on a slow machine, every second, for each pod.
func serving(port int, script string) string {
	return fmt.Sprintf("mkdir -p /tmp/www; [ -e /shared/away ] || touch /tmp/www/ready; httpd -p %d -h /tmp/www; %s", port, script)
}

// What makes a container that is serving not ready, also after a restart if the pod has the folder /shared, and ready again.
const (
	goesAway  = "touch /shared/away; rm /tmp/www/ready"
	comesBack = "rm /shared/away; touch /tmp/www/ready"
)

// readiness is the probe of a container that is serving. A busy machine fails no probe.
func readiness(port int, delay int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt(port)}},
		InitialDelaySeconds: delay, PeriodSeconds: 1, FailureThreshold: 1, TimeoutSeconds: 20,
	}
}

// podOf is a pod of those containers, which share the folder /shared; it outlives them.
func (s *fixture) podOf(name string, containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace},
		Spec: corev1.PodSpec{
			Containers:                   containers,
			AutomountServiceAccountToken: new(false),
			Volumes:                      []corev1.Volume{{Name: "shared", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
}

// on binds a pod to a node.
func on(node string, pod *corev1.Pod) *corev1.Pod {
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	return pod
}

// start creates a pod and waits until all its containers run and are ready.
func (s *fixture) start(pod *corev1.Pod) *corev1.Pod {
	s.t.Helper()
	s.check(s.Create(s.t.Context(), pod), "make pod %s", pod.Name)
	return s.awaitPod(pod.Name, "to be ready", func(pod *corev1.Pod) bool {
		if len(pod.Status.ContainerStatuses) < len(pod.Spec.Containers) {
			return false
		}
		for _, status := range statuses(pod) {
			if status.State.Terminated == nil && !status.Ready {
				return false
			}
		}
		return true
	})
}

func (s *fixture) pod(name string) *corev1.Pod {
	s.t.Helper()
	pod := &corev1.Pod{}
	s.check(s.Get(s.t.Context(), s.key(name), pod), "get pod %s", name)
	return pod
}

func (s *fixture) awaitPod(name, what string, done func(*corev1.Pod) bool) *corev1.Pod {
	s.t.Helper()
	pod := &corev1.Pod{}
	s.await("pod "+name+" "+what, func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, s.key(name), pod)
		return err == nil && done(pod), err
	})
	return pod
}

func statuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
}

// status of a container or native sidecar.
func status(pod *corev1.Pod, container string) corev1.ContainerStatus {
	for _, status := range statuses(pod) {
		if status.Name == container {
			return status
		}
	}
	return corev1.ContainerStatus{}
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// restarted fails the test unless the container is another instance than before, running, and counted once more for
// each restart.
func (s *fixture) restarted(before *corev1.Pod, container string, times int32) *corev1.Pod {
	s.t.Helper()
	after := s.pod(before.Name)
	was, is := status(before, container), status(after, container)
	if is.ContainerID == was.ContainerID || is.State.Running == nil {
		s.t.Errorf("container %s: instance %s, state %+v; want another than %s, running", container, is.ContainerID, is.State, was.ContainerID)
	}
	if is.RestartCount != was.RestartCount+times {
		s.t.Errorf("container %s: restartCount %d, want %d", container, is.RestartCount, was.RestartCount+times)
	}
	return after
}

// untouched fails the test if the container is not the same instance as before.
func (s *fixture) untouched(before *corev1.Pod, container string) {
	s.t.Helper()
	was, is := status(before, container), status(s.pod(before.Name), container)
	if is.ContainerID != was.ContainerID || is.RestartCount != was.RestartCount {
		s.t.Errorf("container %s: instance %s with restartCount %d, want %s with %d still", container, is.ContainerID, is.RestartCount, was.ContainerID, was.RestartCount)
	}
}
