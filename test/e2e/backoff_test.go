package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// kubelet delays the second restart of a container within ten minutes by 10 s, the next by 20, 40 and so on.
const secondBackoff = 10 * time.Second

func respect() func(*request) {
	return annotate(v1beta1.AnnotationRestartBackoff, v1beta1.RestartBackoffRespect)
}

func TestFiveInARowWithoutBackoff(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.start(s.podOf("web", shell("app", obedient)))
	began := time.Now()
	const times = 5
	for i := range times {
		name := fmt.Sprintf("r-%d", i)
		s.ask(name, "web/app")
		s.succeeded(name)
		s.restarted(before, "app", int32(i+1))
	}
	// With kubelet's back-off it would be 10+20+40+80 s.
	if took := time.Since(began); took > 75*time.Second {
		t.Errorf("took %s", took)
	}
	s.awaitEvent("RestartBackoffSkipped", "container app", "--previous", "refit.dev/restart-backoff=respect")
}

// fragile crashes when the file is there, each time once.
const fragile = `trap 'exit 0' TERM; while :; do rm /shared/crash 2>/dev/null && exit 3; sleep 0.1; done`

// crash makes the app end by itself and waits until its next state is as wanted.
func (s *fixture) crash(pod, what string, next func(corev1.ContainerStatus) bool) {
	s.t.Helper()
	was := status(s.pod(pod), "app")
	s.exec(pod, "other", "touch /shared/crash")
	s.awaitPod(pod, what, func(pod *corev1.Pod) bool {
		is := status(pod, "app")
		return (is.ContainerID != was.ContainerID || is.State.Running == nil) && next(is)
	})
}

// awaitCrashLoop waits until kubelet says that it holds back the container after so many restarts. Kubelet 1.36 says so
// only when it looks at the pod again, which it does at the end of the wait, or when the pod is touched.
func (s *fixture) awaitCrashLoop(pod string, restarts int32) *corev1.Pod {
	s.t.Helper()
	return s.awaitPod(pod, "to be in CrashLoopBackOff", func(pod *corev1.Pod) bool {
		app := status(pod, "app")
		if app.RestartCount == restarts && app.State.Terminated != nil {
			s.wake(pod.Name)
		}
		return app.RestartCount == restarts && app.State.Waiting != nil && app.State.Waiting.Reason == "CrashLoopBackOff"
	})
}

// wake makes kubelet look at a pod.
func (s *fixture) wake(pod string) {
	s.t.Helper()
	s.run("annotate", "pod", pod, "--overwrite", "e2e/awake="+time.Now().Format(time.RFC3339Nano))
}

func TestRealCrashStillBacksOff(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.start(s.podOf("web", shell("app", fragile), shell("other", obedient)))
	for i, name := range []string{"a", "b"} {
		s.ask(name, "web/app")
		s.succeeded(name)
		s.restarted(before, "app", int32(i+1))
	}
	s.crash("web", "to start after the first crash", func(app corev1.ContainerStatus) bool { return app.State.Running != nil })
	s.crash("web", "to be down after the second", func(app corev1.ContainerStatus) bool { return app.State.Running == nil })
	s.awaitCrashLoop("web", 3)
	s.awaitPod("web", "to start again", func(pod *corev1.Pod) bool { return status(pod, "app").State.Running != nil })
	s.restarted(before, "app", 4)
}

// TestPreviousLogs pins what a user gets to see of the instance before: all after a plain stop, nothing after one that
// was removed to get around the back-off.
func TestPreviousLogs(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.stoppedOnce()
	if last := status(s.pod(pod), "app").LastTerminationState.Terminated; last == nil || last.ExitCode != 0 || last.Reason != "Completed" {
		t.Errorf("lastState after a plain stop: %+v", last)
	}
	s.ask("second", pod+"/app")
	s.succeeded("second")
	out, err := s.kubectl(t.Context(), "", "--namespace", s.namespace, "logs", pod, "--previous")
	if strings.Contains(out, "TERM") || !containsAny(out, "unable to retrieve container logs", "previous terminated container") {
		t.Errorf("logs --previous after a removal: %q, %v", out, err)
	}
	if got := s.run("logs", pod); got != "started\n" {
		t.Errorf("logs of the running instance: %q", got)
	}
}

// stoppedOnce returns the name of a pod whose container app has been restarted once and has kept its previous logs. kubelet's
// garbage collection, once a minute, keeps one container that does not run: if the next instance has been created and not
// started at that moment, kubelet removes the previous one. Another pod is tried then.
func (s *fixture) stoppedOnce() string {
	s.t.Helper()
	for i := range 3 {
		pod := fmt.Sprint("web-", i)
		s.start(s.podOf(pod, shell("app", obedient)))
		s.ask("first-"+pod, pod+"/app")
		s.succeeded("first-" + pod)
		got := s.run("logs", pod, "--previous")
		if got == "started\nTERM\n" {
			return pod
		}
		if !strings.Contains(got, "unable to retrieve container logs") {
			s.t.Fatalf("logs --previous after a plain stop: %q", got)
		}
	}
	s.t.Fatal("no pod of three has kept its previous logs after a plain stop")
	return ""
}

func TestCrashLoopIsStartedNow(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("web", shell("app", `test -f /shared/fixed || exit 1; `+obedient), shell("other", obedient))
	s.check(s.Create(t.Context(), pod), "make pod")
	// The third exit is followed by 20 s of waiting, the fourth by 40.
	before := s.awaitCrashLoop("web", 3)
	s.exec("web", "other", "touch /shared/fixed")
	began := time.Now()
	s.ask("r", "web/app")
	s.succeeded("r")
	took := time.Since(began)
	s.restarted(before, "app", 1)
	s.untouched(before, "other")
	t.Logf("out of CrashLoopBackOff in %s", took.Round(time.Millisecond))
	if took > secondBackoff {
		t.Errorf("took %s, as long as kubelet's back-off", took)
	}
	s.awaitEvent("RestartBackoffSkipped", "container app")
}

func TestBackoffRespectedWhenAsked(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.start(s.podOf("web", shell("app", obedient)))
	s.ask("first", "web/app")
	s.succeeded("first")
	messages := s.follow("second")
	r := s.ask("second", "web/app", respect())
	s.awaitPod("web", "to be down", func(pod *corev1.Pod) bool { return status(pod, "app").State.Terminated != nil })
	s.wake("web")
	s.said(messages(), "waiting for kubelet", "kubelet back-off until 20")
	s.succeeded("second")
	s.restarted(before, "app", 2)
	started := status(s.pod("web"), "app").State.Running.StartedAt
	if waited := started.Sub(r.CreationTimestamp.Time); waited < secondBackoff-time.Second {
		t.Errorf("started after %s, before kubelet's back-off was over", waited)
	}
	if got := s.run("logs", "web", "--previous"); got != "started\nTERM\n" {
		t.Errorf("logs --previous: %q", got)
	}
	if got := s.events(t.Context(), "RestartBackoffSkipped"); len(got) > 0 {
		t.Errorf("events %q", got)
	}
}

// TestEventedPLEG runs kubelet with the alpha feature gate under which removing an instance does not help before Kubernetes 1.37:
// the delay is reported and waited for. It is not parallel: kubelet restarts.
func TestEventedPLEG(t *testing.T) {
	s := newFixture(t)
	s.needsOwnCluster(t)
	node := s.nodes[0]
	t.Cleanup(func() {
		s.component(t, nil, "restart", "kubelet", node)
		if err := until(context.WithoutCancel(t.Context()), patience, s.kubeletAnswers(node)); err != nil {
			t.Errorf("wait for kubelet: %v", err)
		}
	})
	s.component(t, []string{"KUBELET_FEATURE_GATES=EventedPLEG=true"}, "restart", "kubelet", node)
	s.await("kubelet with EventedPLEG", s.kubeletAnswers(node))
	before := s.start(on(node, s.podOf("web", shell("app", obedient))))
	s.ask("first", "web/app")
	s.succeeded("first")
	messages := s.follow("second")
	s.ask("second", "web/app")
	if said := messages(); s.minor < relistsOnEvents.minor {
		s.said(said, "kubelet back-off until", "EventedPLEG")
	} else if slices.ContainsFunc(said, func(m string) bool { return strings.Contains(m, "back-off") }) {
		t.Errorf("messages %q, want no back-off", said)
	}
	s.succeeded("second")
	s.restarted(before, "app", 2)
}

func (s *fixture) kubeletAnswers(node string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		out, _ := s.kubectl(ctx, "", "get", "--raw", "/api/v1/nodes/"+node+"/proxy/healthz")
		return strings.HasSuffix(out, "ok"), nil
	}
}
