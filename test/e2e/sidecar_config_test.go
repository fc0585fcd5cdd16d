package e2e_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// configure changes the mounted ConfigMap, and has kubelet look at the pod now instead of within a minute.
func (s *sidecarFixture) configure(pod string, edits ...string) {
	s.t.Helper()
	s.apply(s.edited("30-config.yaml", edits...))
	s.run("annotate", "pod", pod, "--overwrite", "example.com/looked-at="+time.Now().Format(time.RFC3339Nano))
}

func (s *sidecarFixture) awaitMetric(pod, line string) {
	s.t.Helper()
	s.await("metric "+line, func(ctx context.Context) (bool, error) {
		got, err := s.send(ctx, call{pod: pod, port: 5001, method: http.MethodGet, path: "/metrics"})
		return err == nil && strings.Contains(got.body, line+"\n"), nil
	})
}

// TestConfigurationIsTakenOverWithoutARestart, and one that is wrong is kept out: status, metric and Event say so, and the
// one before stays in force.
func TestConfigurationIsTakenOverWithoutARestart(t *testing.T) {
	t.Parallel()
	s := newSidecarFixture(t)
	pod := s.start(s.examplePod("pod.yaml"))
	s.awaitMetric(pod.Name, "refit_sidecar_config_last_reload_successful 1")

	s.configure(pod.Name, "annotationKey: refit.dev/hot-update-result", "annotationKey: example.com/update")
	s.awaitEvent("ConfigReloaded", "in force")
	s.accepted(pod.Name, "v1")
	s.awaitPod(pod.Name, "to tell of v1 as configured now", func(pod *corev1.Pod) bool {
		return pod.Annotations["example.com/update"] == "v1: Update success"
	})

	s.configure(pod.Name, "signalName: SIGHUP", "signalNam: SIGHUP")
	s.awaitEvent("ConfigInvalid", "stays in force", "signalNam", "signalName")
	s.awaitMetric(pod.Name, "refit_sidecar_config_last_reload_successful 0")
	status, err := s.status(t.Context(), pod.Name)
	s.check(err, "get status")
	if !containsAll(status.Config.Error, []string{"config.yaml:", "signalNam"}) || !status.Ready {
		t.Errorf("status: ready %t, configuration error %q", status.Ready, status.Config.Error)
	}
	s.accepted(pod.Name, "v2")
	s.awaitPod(pod.Name, "to tell of v2 as configured before", func(pod *corev1.Pod) bool {
		return pod.Annotations["example.com/update"] == "v2: Update success"
	})
	s.serves(pod.Name, "this is v2")
	s.untouched(pod, "refit-sidecar")
	s.untouched(pod, "nginx")
}

// TestWithoutSharedProcessNamespace: everything but signals works, and the sidecar says what it misses.
func TestWithoutSharedProcessNamespace(t *testing.T) {
	t.Parallel()
	t.Run("signals are configured", func(t *testing.T) {
		t.Parallel()
		s := newSidecarFixture(t)
		pod := s.examplePod("pod.yaml")
		pod.Spec.ShareProcessNamespace = new(false)
		s.start(pod)
		s.awaitCondition(pod.Name, selfTested, corev1.ConditionFalse, "shared PID namespace", "shareProcessNamespace")
		s.refused(s.update(pod.Name, sidecarToken, "v1", s.source("v1/default.conf")), http.StatusInternalServerError, "signal", "shareProcessNamespace")
		s.serves(pod.Name, "Welcome to nginx")
		status, err := s.status(t.Context(), pod.Name)
		s.check(err, "get status")
		if len(status.SelfTest) == 0 || status.SelfTest[0].OK || !status.SelfTest[0].Needed {
			t.Errorf("self-test %+v", status.SelfTest)
		}
		s.awaitPod(pod.Name, "to be probed", func(pod *corev1.Pod) bool { return pod.Labels["gameserver-idle"] == "false" })
	})
	t.Run("a request is configured", func(t *testing.T) {
		t.Parallel()
		s := newSidecarFixture(t, "loadPatchType: signal", "loadPatchType: request",
			"          signal:\n            processName: 'nginx: master process nginx'\n            signalName: SIGHUP\n",
			"          request: {url: 'http://127.0.0.1/', method: GET}\n", "          verify:\n            withinSeconds: 5\n            intervalSeconds: 0.2\n            checks:\n              - url: http://127.0.0.1/version\n                timeout: 2\n                expectedResult: '{version}'\n", "")
		pod := s.examplePod("pod.yaml")
		pod.Spec.ShareProcessNamespace = new(false)
		s.start(pod)
		s.awaitCondition(pod.Name, selfTested, corev1.ConditionTrue, "not needed", "shared PID namespace")
		s.accepted(pod.Name, "v1")
		if got := s.exec(pod.Name, "nginx", "cat /etc/nginx/conf.d/default.conf"); !strings.Contains(got, "this is v1") {
			t.Errorf("the program's file is %q", got)
		}
	})
}
