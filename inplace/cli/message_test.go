package cli_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/console"
)

func TestWhatThePodCannotHaveIsWrongUsageAlsoInADryRun(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options plan.Options
		denied  []string
		words   string
	}{
		"a drain without a gate":      {plan.Options{DrainSeconds: 3}, nil, "pod web has no readiness gate KruisePodReady or InPlaceUpdateReady, so it cannot be drained"},
		"an unknown container":        {plan.Options{Order: [][]string{{"foo"}}}, nil, `usage: --order: the pod has no container "foo" that is kept running; it has app, log`},
		"an init container":           {plan.Options{Order: [][]string{{"setup"}}}, nil, `usage: --order: the pod has no container "setup" that is kept running; it has app, log`},
		"a container twice":           {plan.Options{Order: [][]string{{"app"}, {"log", "app"}}}, nil, "container app is named twice"},
		"a permission that is missed": {plan.Options{}, []string{"patch pods"}, "in namespace demo you have no permission to patch pods"},
	} {
		for _, dry := range []bool{true, false} {
			s := newServer()
			s.denied = tt.denied
			_, err := s.set(t.Context(), inplacecli.Config{DryRun: dry, Options: tt.options}, must(change.Image([]string{"app=app:2"})))
			if console.ExitCode(err) != console.ExitRefused || !strings.Contains(err.Error(), tt.words) || len(s.writes) > 0 {
				t.Errorf("%s, dry run %t: %v after %d writes", name, dry, err, len(s.writes))
			}
		}
	}
	if _, err := change.Image([]string{"app=NGINX:1"}); console.ExitCode(err) != console.ExitRefused || !strings.Contains(err.Error(), "not a reference of an image") {
		t.Errorf("no reference: %v", err)
	}
}

// Nothing is pulled or written for a pod that is about to end.
func TestAPodThatIsBeingDeletedIsNotUpdated(t *testing.T) {
	t.Parallel()
	for _, dry := range []bool{true, false} {
		s := newServer()
		s.pod.DeletionTimestamp = new(metav1.Now())
		_, err := s.set(t.Context(), inplacecli.Config{DryRun: dry}, must(change.Image([]string{"app=app:2"})))
		if console.ExitCode(err) != console.ExitRefused || !strings.Contains(err.Error(), "pod web is being deleted") || len(s.writes) > 0 {
			t.Errorf("dry run %t: %v after %d writes", dry, err, len(s.writes))
		}
	}
}

func TestVariableOfAnotherContainerIsNotBlamed(t *testing.T) {
	t.Parallel()
	_, err := newServer().set(t.Context(), inplacecli.Config{}, must(change.Env([]string{"log"}, []string{"LEVEL=debug"})))
	if console.ExitCode(err) != console.ExitRefused || !strings.Contains(err.Error(), "container log does not have this variable") {
		t.Errorf("%v", err)
	}
}

// A limit without a request becomes the request, and the plan says so.
func TestDryRunShowsTheRequestThatALimitBrings(t *testing.T) {
	t.Parallel()
	s := newServer()
	said, err := s.set(t.Context(), inplacecli.Config{DryRun: true}, must(change.Resources(change.Sizes{Containers: []string{"app"}, Limits: "memory=64Mi"})))
	if err != nil || !strings.Contains(said, "requests.cpu=100m requests.memory=64Mi limits.memory=64Mi") {
		t.Errorf("%v; said:\n%s", err, said)
	}
}

// The command's own time is over while it reads the pod: that is no outage of the API server.
func TestTimeoutNamesWhyTheContainerDoesNotStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.broken["app:2"] = "ErrImagePull"
		said, err := s.set(t.Context(), inplacecli.Config{Timeout: 15 * time.Second}, images(t, "app=app:2"))
		if console.ExitCode(err) != console.ExitTimeout || !strings.Contains(err.Error(), "ErrImagePull") || strings.Contains(err.Error()+said, "can be reached") {
			t.Errorf("%v; said:\n%s", err, said)
		}
	})
}

func TestSummaryOfAPodThatWasNotReady(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before func(*server)
		words  string
	}{
		"ready before": {func(*server) {}, "not ready for 0s"},
		"ready after":  {func(s *server) { s.broken["app:1"] = "CrashLoopBackOff" }, "not ready before the update, ready "},
		"never ready":  {func(s *server) { s.condition("example.com/gate", false) }, "not ready before and during the update"},
		"a native sidecar is listed": {func(s *server) {
			s.pod.Spec.InitContainers = append(s.pod.Spec.InitContainers, corev1.Container{Name: "mesh", Image: "mesh:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)})
			s.pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "mesh", ContainerID: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		}, "container mesh: not touched"},
		"the image that was asked for":    {func(*server) {}, "container app: app:2, restarts"},
		"a container that is not changed": {func(*server) {}, "container log: not touched"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(v1beta1.ReadinessGateKruisePodReady)
			tt.before(s)
			if name == "never ready" {
				s.pod.Spec.ReadinessGates = append(s.pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: "example.com/gate"})
			}
			s.kubelet()
			said, err := s.set(t.Context(), inplacecli.Config{}, images(t, "app=app:2"))
			if err != nil || !strings.Contains(said, tt.words) {
				t.Errorf("%s: %v; said:\n%s", name, err, said)
			}
		})
	}
}

func TestSummaryOfAContainerThatWasResized(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		said, err := s.set(t.Context(), inplacecli.Config{}, must(change.Resources(change.Sizes{Containers: []string{"app"}, Requests: "cpu=200m"})))
		if err != nil || !strings.Contains(said, "container app: requests.cpu=200m, not restarted\n") || !strings.Contains(said, "container log: not touched\n") {
			t.Errorf("%v; said:\n%s", err, said)
		}
	})
}
