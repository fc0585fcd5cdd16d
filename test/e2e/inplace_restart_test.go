package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/cri"
)

// Each stop within ten minutes of the last start doubles the delay; with another image it starts again from the beginning.
func TestRepeatedStopsAreDelayedUntilTheImageChanges(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.start(s.podOf("web", shell("app", obedient)))
	var delays []string
	for range 4 {
		stopped := s.stop(pod, "app")
		pod = s.replaced(pod, "app")
		delays = append(delays, time.Since(stopped).Round(100*time.Millisecond).String())
	}
	began := time.Now()
	s.setImage("web", "app="+newImage)
	pod = s.replaced(pod, "app")
	changed := time.Since(began)
	stopped := s.stop(pod, "app")
	s.replaced(pod, "app")
	again := time.Since(stopped)
	s.observed("starts after stops through CRI: %s; after an image change %s; the next stop %s", strings.Join(delays, ", "), changed.Round(100*time.Millisecond), again.Round(100*time.Millisecond))
	// The fifth stop in a row would wait for 80 s. On a slow machine a start without back-off takes more than 10 s.
	if changed > 4*secondBackoff || again > 4*secondBackoff {
		t.Errorf("after an image change %s, the next stop %s: the back-off has not been reset", changed, again)
	}
}

// What kubelet does after a stop through CRI, by restart policy and exit code.
func TestRestartAfterAStopFollowsPolicyAndExitCode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		policy   corev1.RestartPolicy
		code     string
		restarts bool
		phase    corev1.PodPhase
	}{
		{corev1.RestartPolicyAlways, "0", true, corev1.PodRunning},
		{corev1.RestartPolicyAlways, "1", true, corev1.PodRunning},
		{corev1.RestartPolicyOnFailure, "0", false, corev1.PodSucceeded},
		{corev1.RestartPolicyOnFailure, "1", true, corev1.PodRunning},
		{corev1.RestartPolicyNever, "0", false, corev1.PodSucceeded},
		{corev1.RestartPolicyNever, "1", false, corev1.PodFailed},
	} {
		t.Run(fmt.Sprintf("%s after code %s", tt.policy, tt.code), func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			pod := s.podOf("web", ending(tt.code))
			pod.Spec.RestartPolicy = tt.policy
			before := s.start(pod)
			s.stop(before, "app")
			if tt.restarts {
				s.replaced(before, "app")
			} else {
				s.awaitPod("web", "to end", ended)
			}
			after := s.pod("web")
			if after.Status.Phase != tt.phase {
				t.Errorf("phase %s, want %s", after.Status.Phase, tt.phase)
			}
			s.observed("restarted %v, phase %s", status(after, "app").RestartCount > 0, after.Status.Phase)
		})
	}
}

// A container's own policy and rules come before the pod's.
func TestContainerPolicyAndRulesComeBeforeThePods(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Container){
		"policy Always": func(c *corev1.Container) { c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways) },
		"rule for code 143": func(c *corev1.Container) {
			c.RestartPolicy = new(corev1.ContainerRestartPolicyNever)
			c.RestartPolicyRules = []corev1.ContainerRestartRule{{
				Action:    corev1.ContainerRestartRuleActionRestart,
				ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{143, 137}},
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			app := ending("143")
			change(&app)
			pod := s.podOf("web", app, shell("other", obedient))
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			before := s.start(pod)
			s.stop(before, "app")
			s.replaced(before, "app")
			s.restarted(before, "app", 1)
			s.untouched(before, "other")
			s.observed("restarted although the pod's policy is Never")
		})
	}
}

// An instance that is removed as well as stopped is one that kubelet has never seen.
func TestRemovedInstanceIsStartedWhateverThePolicySays(t *testing.T) {
	t.Parallel()
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			// If kubelet sees the end before the instance is removed, it starts none: seen in about one of ten runs.
			const attempts = 4
			for attempt := range attempts {
				if s.startsAfterRemoval(fmt.Sprintf("web-%d", attempt), policy) {
					return
				}
			}
			t.Error("kubelet has started none")
		})
	}
}

// startsAfterRemoval stops and removes an instance that ends with code 0, and reports whether kubelet starts another.
func (s *fixture) startsAfterRemoval(name string, policy corev1.RestartPolicy) bool {
	s.t.Helper()
	pod := s.podOf(name, ending("0"), shell("other", obedient))
	pod.Spec.RestartPolicy = policy
	before := s.start(pod)
	runtime, id := s.runtime(before), instance(s.t, before, "app")
	s.check(runtime.StopContainer(s.t.Context(), id, 5*time.Second), "stop")
	s.check(runtime.RemoveContainer(s.t.Context(), id), "remove")
	began := time.Now()
	err := until(s.t.Context(), patience/3, s.running(before, "app"))
	after := s.pod(name)
	app := status(after, "app")
	s.observed("policy %s: another instance reported: %v, after %s; restartCount %d, lastState %+v, phase %s", policy, err == nil,
		time.Since(began).Round(100*time.Millisecond), app.RestartCount, app.LastTerminationState.Terminated, after.Status.Phase)
	list, listErr := runtime.ListContainers(s.t.Context(), string(before.UID))
	s.check(listErr, "list containers")
	for _, container := range list {
		if container.Name == "app" && container.ID != id {
			return true
		}
	}
	return false
}

// One container's end restarts the whole pod, init containers too (KEP-5532).
func TestRuleRestartsAllContainersInPlace(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	app := ending("1")
	app.RestartPolicy = new(corev1.ContainerRestartPolicyNever)
	app.RestartPolicyRules = []corev1.ContainerRestartRule{{
		Action:    corev1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpNotIn, Values: []int32{0}},
	}}
	pod := s.podOf("web", app, shell("other", obedient))
	pod.Spec.InitContainers = []corev1.Container{shell("setup", "echo ran >>/shared/setup")}
	before := s.start(pod)
	s.stop(before, "app")
	s.replaced(before, "other")
	after := s.replaced(before, "app")
	s.same(before)
	if got := s.exec("web", "other", "cat /shared/setup"); strings.Count(got, "ran") != 2 {
		t.Errorf("the init container ran %d times, want 2", strings.Count(got, "ran"))
	}
	s.observed("restartCount app %d, other %d, setup %d; condition AllContainersRestarting=%q; other's last state %+v", status(after, "app").RestartCount,
		status(after, "other").RestartCount, status(after, "setup").RestartCount, condition(after, "AllContainersRestarting"), status(after, "other").LastTerminationState.Terminated)
}

// level is a container with an environment variable from the annotation level.
func level(container corev1.Container) corev1.Container {
	container.Env = append(container.Env, corev1.EnvVar{Name: "LEVEL", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['level']"},
	}})
	return container
}

func TestEnvironmentFromAnAnnotationIsChangedByOneRestart(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("web", level(shell("app", obedient)), shell("other", obedient))
	pod.Annotations = map[string]string{"level": "info"}
	before := s.start(pod)
	s.updates("env", "pod/web", "LEVEL=debug\nof two lines")
	after := s.restarted(before, "app", 1)
	s.untouched(before, "other")
	s.same(before)
	environment, err := s.runtime(after).Environment(t.Context(), instance(t, after, "app"))
	s.check(err, "read the environment from the runtime")
	if got := environment["LEVEL"]; got != "debug\nof two lines" {
		t.Errorf("LEVEL is %q", got)
	}
	s.observed("one restart; the runtime's verbose status has LEVEL=%q", environment["LEVEL"])
}

// An annotation that is edited by hand restarts nothing.
func TestEditedAnnotationRestartsNothing(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("web", level(shell("app", obedient)))
	pod.Annotations = map[string]string{"level": "info"}
	before := s.start(pod)
	s.run("annotate", "pod", "web", "--overwrite", "level=debug")
	s.setImage("web", "app="+newImage) // kubelet has seen both when it has acted on this
	s.replaced(before, "app")
	s.restarted(before, "app", 1)
	if got := s.exec("web", "app", "echo $LEVEL"); strings.TrimSpace(got) != "debug" {
		t.Errorf("LEVEL is %q", got)
	}
}

// A changed annotation together with the image: one stop is enough for both.
func TestImageAndEnvironmentTogetherAreOneRestart(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("web", level(shell("app", obedient)))
	pod.Annotations = map[string]string{"level": "info"}
	before := s.gated(pod)
	s.updates("env", "pod/web", "LEVEL=debug")
	s.updates("image", "pod/web", "app="+newImage)
	s.restarted(before, "app", 2)
	if got := s.exec("web", "app", "echo $LEVEL"); strings.TrimSpace(got) != "debug" {
		t.Errorf("LEVEL is %q", got)
	}
}

// An image that somebody else than kubelet has pulled: it is used, unless kubelet is to verify all credentials again.
// It is not parallel: kubelet restarts.
func TestImagePulledByAnotherThanKubelet(t *testing.T) {
	s := newFixture(t)
	s.needsOwnCluster(t)
	node := s.nodes[0]
	// No other test has kubelet pull the second one.
	const present, pulled = "docker.io/library/nginx:1.22", "docker.io/library/nginx:latest"
	app := corev1.Container{Name: "app", Image: present}
	app.ImagePullPolicy = corev1.PullIfNotPresent
	s.start(on(node, s.podOf("pull", app)))
	app.ImagePullPolicy = corev1.PullNever
	first, second := s.start(on(node, s.podOf("first", app))), s.start(on(node, s.podOf("second", app)))
	_, err := s.runtime(first).PullImage(t.Context(), cri.PullRequest{Image: pulled})
	s.check(err, "pull through CRI")
	s.updates("image", "pod/first", "app="+pulled)
	s.observed("imagePullPolicy Never, default verification: the pulled image is used")

	s.configureKubelet(node, "imagePullCredentialsVerificationPolicy: AlwaysVerify")
	s.setImage("second", "app="+pulled)
	after := s.awaitPod("second", "to say what becomes of it", func(pod *corev1.Pod) bool {
		is := status(pod, "app")
		return is.State.Waiting != nil || is.State.Running != nil && is.ContainerID != status(second, "app").ContainerID
	})
	s.observed("imagePullPolicy Never, AlwaysVerify: waiting %+v, running %+v", status(after, "app").State.Waiting, status(after, "app").State.Running)
	if waiting := status(after, "app").State.Waiting; waiting == nil || waiting.Reason != "ErrImageNeverPull" {
		t.Errorf("waiting %+v, want ErrImageNeverPull", waiting)
	}
	out, code := s.set("image", "pod/second", "app="+pulled)
	if code != 0 || !strings.Contains(out, "unchanged") {
		t.Errorf("exit code %d: %s", code, out)
	}
}
