package e2e_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// remembered waits until a workload's record in the ConfigMap names a version.
func (s *sidecarFixture) remembered(workload, version string) {
	s.t.Helper()
	s.await(workload+" to be remembered at "+version, func(ctx context.Context) (bool, error) {
		record := &corev1.ConfigMap{}
		err := s.Get(ctx, s.key("sidecar-result"), record)
		return strings.Contains(record.Data[workload], `"version":"`+version+`"`), client.IgnoreNotFound(err)
	})
}

// kill ends a process of the pod with KILL, as an out-of-memory kill would.
func (s *sidecarFixture) kill(pod *corev1.Pod, container, process string) {
	s.t.Helper()
	was := status(pod, container)
	s.exec(pod.Name, "nginx", "true")
	// The command may end with its own container.
	line := "for p in /proc/[0-9]*; do grep -qx " + process + " $p/comm && kill -KILL ${p#/proc/}; done"
	_, _ = s.inContainer(s.t.Context(), pod.Name, "nginx", line)
	s.awaitPod(pod.Name, "to have another "+container, func(pod *corev1.Pod) bool {
		is := status(pod, container)
		return is.ContainerID != was.ContainerID && is.Ready && is.RestartCount == was.RestartCount+1
	})
}

// TestAcceptedRevisionIsRestored takes away, one after another, all that could hold it: the program's container, the
// sidecar's, and the pod with its volume. Two workloads share the ConfigMap and must not mix.
func TestAcceptedRevisionIsRestored(t *testing.T) {
	t.Parallel()
	s := newSidecarFixture(t)
	versions := map[string]string{"blue": "v1", "green": "v2"}
	for name := range versions {
		s.deployment(name, s.examplePod("pod.yaml"))
	}
	pods := map[string]*corev1.Pod{}
	for name, version := range versions {
		pods[name] = s.podOfDeployment(name, "")
		s.accepted(pods[name].Name, version)
		s.serves(pods[name].Name, "this is "+version)
		s.remembered("Deployment."+name, version)
	}

	blue := pods["blue"]
	s.kill(blue, "nginx", "nginx")
	s.serves(blue.Name, "this is v1")
	s.kill(s.pod(blue.Name), "refit-sidecar", "refit-sidecar")
	s.serves(blue.Name, "this is v1")
	s.await("the sidecar to know v1", func(ctx context.Context) (bool, error) {
		status, err := s.status(ctx, blue.Name)
		return err == nil && status.Ready && status.current() == "v1", nil
	})

	for _, pod := range pods {
		s.check(s.Delete(t.Context(), pod, client.GracePeriodSeconds(0)), "delete pod")
	}
	for name, version := range versions {
		pod := s.podOfDeployment(name, pods[name].Name)
		s.serves(pod.Name, "this is "+version)
		s.awaitPod(pod.Name, "to tell of what was restored", func(pod *corev1.Pod) bool {
			return pod.Annotations["refit.dev/hot-update-result"] == version+": Update success"
		})
	}
}

// TestNativeSidecarRestoresBeforeTheProgramStarts: the program must never be seen with the files of its image.
func TestNativeSidecarRestoresBeforeTheProgramStarts(t *testing.T) {
	t.Parallel()
	s := newSidecarFixture(t)
	pod := s.examplePod("pod-native.yaml")
	// The program says what it was started with.
	pod.Spec.Containers[0].Command = []string{"sh", "-c", "grep -o 'this is v.' /etc/nginx/conf.d/default.conf || echo first files; exec nginx -g 'daemon off;'"}
	s.deployment("early", pod)
	first := s.podOfDeployment("early", "")
	s.accepted(first.Name, "v1")
	s.remembered("Deployment.early", "v1")
	if lines := s.logLines(first.Name, "nginx"); !slices.Contains(lines, "first files") {
		t.Errorf("the first pod began with %q", lines)
	}
	s.check(s.Delete(t.Context(), first, client.GracePeriodSeconds(0)), "delete pod")
	second := s.podOfDeployment("early", first.Name)
	s.serves(second.Name, "this is v1")
	if lines := s.logLines(second.Name, "nginx"); !slices.Contains(lines, "this is v1") || slices.Contains(lines, "first files") {
		t.Errorf("the second pod began with %q", lines)
	}
}
