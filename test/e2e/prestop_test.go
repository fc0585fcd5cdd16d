package e2e_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
)

func (s *fixture) podWithHook(script string, hook corev1.LifecycleHandler) *corev1.Pod {
	pod := s.podOf("web", shell("app", script))
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &hook}
	return pod
}

func grace(seconds int64) func(*request) {
	return strategy(v1beta1.ContainerRecreateRequestStrategy{TerminationGracePeriodSeconds: &seconds})
}

// stopTook is from the creation of the request to the end of the instance it stopped, in whole seconds of two clocks.
func (s *fixture) stopTook(r *request, container string) time.Duration {
	s.t.Helper()
	last := status(s.pod(r.Spec.PodName), container).LastTerminationState.Terminated
	if last == nil {
		s.t.Fatalf("container %s has no last state", container)
	}
	return last.FinishedAt.Sub(r.CreationTimestamp.Time)
}

func TestPreStopExecBoundedByGrace(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.start(s.podWithHook(obedient, corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "echo began > /shared/hook; sleep 600"}}}))
	r := s.ask("r", "web/app", grace(8)) // enough for the hook to begin, on a machine that is busy
	s.succeeded("r")
	s.restarted(before, "app", 1)
	if took := s.stopTook(r, "app"); took < 7*time.Second || took > 40*time.Second {
		t.Errorf("stopped after %s, want the grace period of 8 s and little more", took)
	}
	s.awaitEvent("FailedPreStopHook", "app")
	if got := s.exec("web", "app", "cat /shared/hook"); got != "began\n" {
		t.Errorf("the hook wrote %q", got)
	}
}

func TestPreStopExecThatEndsIsFollowedByTheStop(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.start(s.podWithHook(`trap 'echo stop >> /shared/order; exit 0' TERM; while :; do sleep 1000 & wait $!; done`,
		corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "echo hook >> /shared/order"}}}))
	s.ask("r", "web/app")
	s.succeeded("r")
	s.restarted(before, "app", 1)
	if got := s.exec("web", "app", "cat /shared/order"); got != "hook\nstop\n" {
		t.Errorf("order %q, want the hook and then the stop, each once", got)
	}
}

// TestPreStopHTTPGetGoesToPodIP has a hook without host and with the name of a port, as nearly all are written.
func TestPreStopHTTPGetGoesToPodIP(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	const server = `mkdir -p /www/cgi-bin
		printf '#!/bin/sh\necho "$REQUEST_METHOD from $REMOTE_ADDR" >> /shared/hook\nprintf "Content-Type: text/plain\\r\\n\\r\\nok"\n' > /www/cgi-bin/bye
		chmod +x /www/cgi-bin/bye
		httpd -p 8080 -h /www
		` + obedient
	pod := s.podWithHook(server, corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/cgi-bin/bye", Port: intstr.FromString("http")}})
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}, PeriodSeconds: 1,
	}
	before := s.start(pod)
	s.ask("r", "web/app")
	s.succeeded("r")
	s.restarted(before, "app", 1)
	if got := s.exec("web", "app", "cat /shared/hook"); !strings.HasPrefix(got, "GET from ") || strings.Count(got, "\n") != 1 {
		t.Errorf("calls of the hook: %q, want one GET", got)
	}
	if failures := s.events(t.Context(), "FailedPreStopHook"); len(failures) > 0 {
		t.Errorf("the hook failed: %q", failures)
	}
}

func TestPreStopSleepHonoured(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.start(s.podWithHook(obedient, corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 4}}))
	r := s.ask("r", "web/app")
	s.succeeded("r")
	s.restarted(before, "app", 1)
	if took := s.stopTook(r, "app"); took < 3*time.Second || took > 20*time.Second {
		t.Errorf("stopped after %s, want a little more than the sleep of 4 s", took)
	}
}

func TestPreStopTCPSocketRefused(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.start(s.podWithHook(obedient, corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}))
	s.refused(s.newRequest("r", "web/app"), "spec.containers[0].name", "tcpSocket", "terminationGracePeriodSeconds: 0")
	s.untouched(before, "app")
	// The way out that the message names.
	s.ask("now", "web/app", grace(0))
	s.succeeded("now")
	s.restarted(before, "app", 1)
}

func TestGraceZeroMeansNow(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.start(s.podWithHook(stubborn, corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "echo hook > /shared/hook; sleep 600"}}}))
	r := s.ask("r", "web/app", grace(0))
	s.succeeded("r")
	after := s.restarted(before, "app", 1)
	if took := s.stopTook(r, "app"); took > 10*time.Second {
		t.Errorf("stopped after %s", took)
	}
	if code := status(after, "app").LastTerminationState.Terminated.ExitCode; code != 137 {
		t.Errorf("exit code %d, want 137 for KILL", code)
	}
	if got := s.exec("web", "app", "cat /shared/hook 2>/dev/null || echo none"); got != "none\n" {
		t.Errorf("the hook was run: %q", got)
	}
}
