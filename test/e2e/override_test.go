package e2e_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

var override = annotate(v1beta1.AnnotationRestartPolicy, v1beta1.RestartPolicyOverride)

// Nothing keeps such a pod running while its only container is down, so nothing is stopped.
func TestOverrideDoesNotEndAPodOfOneContainer(t *testing.T) {
	t.Parallel()
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			pod := s.podOf("job", ending("0"))
			pod.Spec.RestartPolicy = policy
			before := s.start(pod)
			s.refused(s.newRequest("r", "job/app", override), "spec.containers[0].name", "restartPolicy is "+string(policy), "no other container", "would end the pod")
			s.untouched(before, "app")
		})
	}
}

// Both containers of a pod are asked for at once, and one of them always runs.
func TestOverrideOfAllContainersDoesNotEndThePod(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("job", ending("0"), shell("other", obedient))
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	s.start(pod)
	s.ask("r", "job/app,other", override)
	ended := s.ended("r")
	now := s.awaitPod("job", "to be there", func(*corev1.Pod) bool { return true })
	if now.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod has ended as %s; the request: %s", now.Status.Phase, ended.Status.Message)
	}
}

// TestGracePeriodOutlivesTheDaemon kills the daemon between TERM and KILL. It is not parallel: others need the daemon.
func TestGracePeriodOutlivesTheDaemon(t *testing.T) {
	s := newFixture(t)
	node := s.nodes[0]
	pod := on(node, s.podOf("web", shell("app", stubborn)))
	pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
	before := s.start(pod)
	s.ask("r", "web/app")
	s.await("TERM in the container", func(ctx context.Context) (bool, error) {
		out, err := s.kubectl(ctx, "", "--namespace", s.namespace, "logs", "web", "--container", "app")
		return err == nil && strings.Contains(out, "TERM"), nil
	})
	term := time.Now()
	<-time.After(20 * time.Second)
	s.check(syscall.Kill(s.daemonProcess(node), syscall.SIGKILL), "kill the daemon")
	s.awaitPod("web", "to have its next container", func(pod *corev1.Pod) bool {
		is := status(pod, "app")
		return is.ContainerID != status(before, "app").ContainerID && is.State.Running != nil
	})
	if took := time.Since(term); took > 48*time.Second { // a whole period again would be 50 s and the start of the daemon, which kubelet may delay by its back-off
		t.Errorf("the next container runs %s after TERM, with 30 s of grace", took)
	}
	s.succeeded("r")
	s.restarted(before, "app", 1)
}
