package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// configureKubelet adds a line to the configuration of a node's kubelet until the test ends. Kubelet restarts for it.
func (s *fixture) configureKubelet(node, line string) {
	s.t.Helper()
	s.needsOwnCluster(s.t)
	config := filepath.Join(s.state, "nodes", node, "config", "kubelet.yaml")
	was, err := os.ReadFile(config)
	s.check(err, "read kubelet's configuration")
	configure := func(text []byte) {
		s.check(os.WriteFile(config, text, 0o600), "write kubelet's configuration")
		s.component(s.t, nil, "kill", "kubelet", node) // its supervisor starts it with what is in the file
		s.check(until(context.WithoutCancel(s.t.Context()), patience, s.kubeletAnswers(node)), "wait for kubelet")
	}
	s.t.Cleanup(func() { configure(was) })
	configure(append(slices.Clone(was), "\n"+line+"\n"...))
}

// Stops with a bounded back-off. It is not parallel: kubelet restarts.
func TestMaxContainerRestartPeriodBoundsTheBackOff(t *testing.T) {
	s := newFixture(t)
	node := s.nodes[0]
	s.configureKubelet(node, "crashLoopBackOff: {maxContainerRestartPeriod: 1s}")
	pod := s.start(on(node, s.podOf("web", shell("app", obedient))))
	var delays []string
	for range 4 {
		stopped := s.stop(pod, "app")
		pod = s.replaced(pod, "app")
		delay := time.Since(stopped)
		delays = append(delays, delay.Round(100*time.Millisecond).String())
		// The second would wait for 10 s and the fourth for 40 s.
		if delay > secondBackoff {
			t.Errorf("started after %s", delay)
		}
	}
	s.observed("maxContainerRestartPeriod 1s: starts after stops through CRI: %s", strings.Join(delays, ", "))
}

// A changed annotation in an image without a shell: neither the daemon nor the tool runs anything in the container.
func TestEnvironmentOfADistrolessImageIsChangedByOneRestart(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	repository, _, digest := s.testappImage()
	pod := s.podOf("web", level(corev1.Container{Name: "app", Image: repository + "@" + digest}))
	pod.Annotations = map[string]string{"level": "info"}
	before := s.gated(pod)
	s.reportOf("web", "app")
	s.updates("env", "pod/web", "LEVEL=debug")
	after := s.restarted(before, "app", 1)
	s.same(before)
	s.reportOf("web", "app")
	environment, err := s.runtime(after).Environment(t.Context(), instance(t, after, "app"))
	s.check(err, "read the environment from the runtime")
	if environment["LEVEL"] != "debug" {
		t.Errorf("LEVEL is %q", environment["LEVEL"])
	}
}
