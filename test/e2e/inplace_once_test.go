package e2e_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// unhurried counts its hooks and signals in files that outlive it, and takes ten seconds to end: long enough for somebody else
// to want to stop it as well.
func unhurried(name string) corev1.Container {
	container := shell(name, `trap 'echo TERM >>/shared/signals; sleep 10; exit 0' TERM; while :; do sleep 1000 & wait $!; done`)
	container.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{
		Command: []string{"sh", "-c", "echo hook >>/shared/hooks"},
	}}}
	return container
}

// stopping waits until the container app has been told to end, by what the container other sees of it.
func (s *fixture) stopping(pod string) {
	s.t.Helper()
	s.await("TERM", func(ctx context.Context) (bool, error) {
		out, err := s.inContainer(ctx, pod, "other", "cat /shared/signals || true")
		return err == nil && strings.Contains(out, "TERM"), nil
	})
}

// The daemon restarts a container for its environment, and a request wants it restarted, at the same moment: it is stopped
// once, by one preStop hook and one TERM, and both have what they wanted.
func TestEnvironmentAndRequestAtOnceAreOneRestart(t *testing.T) {
	t.Parallel()
	change := func(s *fixture) {
		s.gate("web", corev1.ConditionFalse)
		s.run("annotate", "pod", "web", "--overwrite", "level=debug")
	}
	request := func(s *fixture) { s.ask("restart", "web/app") }
	for name, order := range map[string][2]func(*fixture){
		"the daemon first":  {change, request},
		"the request first": {request, change},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			pod := s.podOf("web", level(unhurried("app")), shell("other", obedient))
			pod.Annotations = map[string]string{"level": "info"}
			s.gated(pod)
			before := s.reportOf("web", "app")
			order[0](s)
			s.stopping("web")
			order[1](s)
			s.replaced(before, "app")
			s.succeeded("restart")
			s.reportOf("web", "app") // of an instance with the new environment
			s.gate("web", corev1.ConditionTrue)
			s.awaitPod("web", "to be ready", podReady)
			s.restarted(before, "app", 1)
			if got := strings.Fields(s.exec("web", "app", "echo $LEVEL; cat /shared/signals /shared/hooks")); strings.Join(got, " ") != "debug TERM hook" {
				t.Errorf("LEVEL, signals and hooks: %q, want debug, one TERM and one hook", got)
			}
		})
	}
}

// A program that has seen one instance does not restart the next one, which somebody else has had started meanwhile.
func TestRequestForAReplacedInstanceIsAConflict(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.start(s.podOf("web", shell("app", obedient)))
	s.ask("first", "web/app")
	s.succeeded("first")
	expected := func(pod *corev1.Pod) func(*request) {
		text, err := json.Marshal(map[string]string{"app": status(pod, "app").ContainerID})
		s.check(err, "encode instances")
		return func(r *request) {
			metav1.SetMetaDataAnnotation(&r.ObjectMeta, v1beta1.AnnotationExpectedInstances, string(text))
		}
	}
	err := s.Create(t.Context(), s.newRequest("late", "web/app", expected(before)))
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "container app has been replaced") {
		t.Errorf("%v, want a conflict", err)
	}
	s.restarted(before, "app", 1)
	s.ask("again", "web/app", expected(s.pod("web")))
	s.succeeded("again")
	s.restarted(before, "app", 2)
}
