package e2e_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// What a restart cannot do is refused before anything is created: for a workload and on trial as well.
func TestRestartRefusesWhatItWouldDropSilently(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pods := s.deployment("web", 2)
	s.start(s.podOf("plain", shell("app", obedient)))
	for _, test := range []struct{ args, words string }{
		{"pod/plain -c app --max-unavailable=2", "--max-unavailable has no meaning for one pod"},
		{"pod/plain -c app --drain-seconds=3", "pod plain has no readiness gate KruisePodReady, so it cannot be drained"},
		{"pod/plain -c app --drain-seconds=3 --dry-run", "pod plain has no readiness gate KruisePodReady"},
		{"deployment web -c nope", "the pods of deployment/web have no container \"nope\" that can be restarted; they have app, log"},
		{"deployment/web -c nope --dry-run=server", "the pods of deployment/web have no container \"nope\""},
		{"pod/plain -c nope", "refused: spec.containers[0].name: container nope not found in Pod plain, which has app"},
	} {
		if out, code := s.restart(strings.Fields(test.args)...); code != 2 || !strings.Contains(out, test.words) {
			t.Errorf("restart %s: exit code %d, want %q in:\n%s", test.args, code, test.words, out)
		}
	}
	if rollouts := s.rollouts(t.Context()); len(rollouts) > 0 {
		t.Errorf("%d RestartRollouts", len(rollouts))
	}
	s.untouched(&pods[0], "app")
	out := s.shown([]string{"restart", "pod/plain", "-c", "app", "--min-ready-seconds=2", "--dry-run", "-o", "yaml"}, "minStartedSeconds: 2", "would be restarted")
	if strings.Contains(out, "creationTimestamp: \"2") && strings.Contains(s.run("get", "crr", "--output=name"), "plain") {
		t.Errorf("the dry run has created a request:\n%s", out)
	}
	s.shown([]string{"restart", "pod", "plain", "-c", "app", "--min-ready-seconds=2"}, "restarted in")
	if out := s.run("get", "restartrollouts"); strings.Contains(out, "web") {
		t.Errorf("%s", out)
	}
}

// A request that is made without the command is admitted, with a warning.
func TestDrainWithoutReadinessGateIsWarnedOf(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.start(s.podOf("web", shell("app", obedient)))
	s.deployment("ungated", 1)
	const objects = `apiVersion: apps.kruise.io/v1beta1
kind: ContainerRecreateRequest
metadata: {name: drained}
spec:
  podName: web
  containers: [{name: app}]
  strategy: {unreadyGracePeriodSeconds: 2}
---
apiVersion: refit.dev/v1alpha1
kind: RestartRollout
metadata: {name: drained}
spec:
  selector: {matchLabels: {app: ungated}}
  containers: [{name: app}]
  drainSeconds: 2
`
	out, err := s.kubectl(t.Context(), objects, "--namespace", s.namespace, "apply", "--filename=-")
	s.check(err, "create %s", out)
	if !strings.Contains(out, "Warning: unreadyGracePeriodSeconds has no effect: pod web has no readiness gate KruisePodReady") {
		t.Errorf("no warning in:\n%s", out)
	}
	s.awaitEvent("NotDrained", "has no readiness gate KruisePodReady")
	s.succeeded("drained")
}

// The causes that kubectl refit why names have to be the causes of what was done.
func TestWhyNamesTheUpdateBeforeTheLast(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.start(s.podOf("web", shell("app", obedient), shell("log", obedient)))
	s.updates("image", "pod/web", "app="+newImage)
	s.updates("image", "pod/web", "log="+newImage)
	s.awaitEvent("Killing", "Container app definition changed")
	s.shown([]string{"why", "web", "-c", "app"}, "UpdatedInPlace: replaced by an in-place update of the pod")
	s.shown([]string{"why", "web", "-c", "log"}, "UpdatedInPlace: replaced by an in-place update of the pod")
	if out, code := s.set("image", "pod/web", "app="+missingImage, "--no-pull", "--timeout=15s"); code == 0 {
		t.Fatalf("the image exists:\n%s", out)
	}
	s.awaitPod("web", "to wait for an image that cannot be pulled", func(p *corev1.Pod) bool {
		status := p.Status.ContainerStatuses[0]
		return status.Name == "app" && status.State.Waiting != nil
	})
	s.awaitEvent("Failed", "Failed to pull image")
	if out := s.shown([]string{"why", "web", "-c", "app"}, "UpdatedInPlace: stopped by an in-place update", "no-such-tag"); strings.Contains(out, "starts it at once\n") {
		t.Errorf("a start is promised:\n%s", out)
	}
}

// While kubelet may not start the container again the request that has stopped it is named.
func TestWhyNamesTheRequestUnderWay(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("web", shell("app", obedient))
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "gate"}, Key: "a"}}}}
	s.run("create", "configmap", "gate", "--from-literal=a=b")
	s.start(pod)
	s.run("delete", "configmap", "gate")
	s.ask("gated", "web/app")
	s.awaitRequest("gated", "to have stopped the container", func(r *request) bool {
		states := r.Status.ContainerRecreateStates
		return len(states) > 0 && states[0].Phase == v1beta1.ContainerRecreateRequestRecreating
	})
	s.awaitPod("web", "to wait for its ConfigMap", func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].State.Running == nil })
	s.shown([]string{"why", "web"}, "Requested: stopped by ContainerRecreateRequest gated", "kubelet has not started it again yet")
	s.run("create", "configmap", "gate", "--from-literal=a=b")
}
