package cli_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/refit-project/refit/api/v1beta1"
	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/console"
)

func (s *server) count(subresource string) int {
	n := 0
	for _, write := range s.writes {
		if strings.HasPrefix(write, subresource+"@") {
			n++
		}
	}
	return n
}

// The API server rounds up to a thousandth of a CPU.
func TestQuantityThatIsRoundedIsWrittenOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		change := must(change.Resources(change.Sizes{Containers: []string{"app"}, Limits: "cpu=100.5m"}))
		said, err := s.set(t.Context(), inplacecli.Config{Timeout: time.Minute}, change)
		limit := s.pod.Spec.Containers[0].Resources.Limits.Cpu().String()
		if err != nil || s.count("resize") != 1 || limit != "101m" || !strings.Contains(said, "limits.cpu=101m") {
			t.Errorf("%v, %d resizes, limit %s; said:\n%s", err, s.count("resize"), limit, said)
		}
	})
}

func TestNothingIsWrittenTwiceToAPodThatDoesNotChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.ignore = true
		said, err := s.set(t.Context(), inplacecli.Config{Timeout: time.Minute}, must(change.Resources(change.Sizes{Requests: "cpu=200m"})))
		if console.ExitCode(err) != console.ExitTimeout || !strings.Contains(err.Error(), "has stored nothing") {
			t.Errorf("%v; said:\n%s", err, said)
		}
		slices.Sort(s.writes)
		if len(slices.Compact(slices.Clone(s.writes))) != len(s.writes) {
			t.Errorf("written again to the same version of the pod: %v", s.writes)
		}
	})
}

func TestContainerThatDoesNotStartBlocksNobodyElse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stuck  func(*server)
		before change.Change
		code   int
	}{
		"it ends for good":         {func(s *server) { s.pod.Spec.RestartPolicy, s.broken["app:2"] = corev1.RestartPolicyOnFailure, "ended" }, nil, console.ExitFailed},
		"its image does not come":  {func(s *server) { s.broken["app:2"] = "ImagePullBackOff" }, nil, console.ExitTimeout},
		"its resize is deferred":   {func(s *server) { s.pending = corev1.PodReasonDeferred }, must(change.Resources(change.Sizes{Containers: []string{"app"}, Requests: "cpu=2"})), console.ExitTimeout},
		"its resize is infeasible": {func(s *server) { s.pending = corev1.PodReasonInfeasible }, must(change.Resources(change.Sizes{Containers: []string{"app"}, Requests: "cpu=2"})), console.ExitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(v1beta1.ReadinessGateKruisePodReady)
				first := tt.before
				if first == nil {
					first = images(t, "app=app:2")
				}
				config := inplacecli.Config{Timeout: 30 * time.Second, Options: plan.Options{ImagesPresent: true}}
				tt.stuck(s)
				if _, err := s.set(t.Context(), config, first); console.ExitCode(err) != tt.code {
					t.Errorf("the first: exit code %d, want %d: %v", console.ExitCode(err), tt.code, err)
				}
				said, err := s.set(t.Context(), config, images(t, "log=log:2"))
				if err != nil || s.image("log") != "log:2" || !strings.Contains(said, "not of this change: ") {
					t.Errorf("%v, image %s; said:\n%s", err, s.image("log"), said)
				}
				if !strings.Contains(name, "image") && !s.open(v1beta1.ReadinessGateKruisePodReady) {
					t.Error("the pod is still out of its Services")
				}
			})
		})
	}
}

func TestContainerThatIsNotStartedAgainIsRefusedBeforehand(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ended  bool
		change change.Change
		config inplacecli.Config
		words  string
	}{
		"its image, when it has ended":          {true, must(change.Image([]string{"app=app:2"})), inplacecli.Config{Options: plan.Options{ImagesPresent: true}}, "has ended with code 0"},
		"its resources, when it has ended":      {true, must(change.Resources(change.Sizes{Containers: []string{"app"}, Requests: "cpu=200m"})), inplacecli.Config{}, "has ended with code 0"},
		"its environment":                       {false, must(change.Env(nil, []string{"LEVEL=debug"})), inplacecli.Config{}, "may not be started again"},
		"its image, when it is not on the node": {false, must(change.Image([]string{"app=app:2"})), inplacecli.Config{}, "restartPolicy OnFailure"},
	} {
		for _, dry := range []bool{true, false} {
			s := newServer()
			s.pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			s.ended["app"] = tt.ended
			s.kubelet()
			tt.config.DryRun = dry
			if _, err := s.set(t.Context(), tt.config, tt.change); console.ExitCode(err) != console.ExitRefused || !strings.Contains(err.Error(), tt.words) || len(s.writes) > 0 {
				t.Errorf("%s, dry run %t: %v after %d writes", name, dry, err, len(s.writes))
			}
		}
	}
}

// A write that the API server refuses for good is exit code 2, and the record is written without it.
func TestWriteThatTheAPIServerRefusesIsReportedAndNotRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.refuse = func(subresource string) error {
			if subresource == "resize" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("exceeded quota"))
			}
			return nil
		}
		said, err := s.set(t.Context(), inplacecli.Config{}, must(change.Resources(change.Sizes{Containers: []string{"app"}, Requests: "cpu=2"})))
		if console.ExitCode(err) != console.ExitRefused || !strings.Contains(err.Error(), "exceeded quota") || len(s.writes) != 3 || strings.Contains(s.record(), `"cpu"`) {
			t.Errorf("%v after %v, record %s; said:\n%s", err, s.writes, s.record(), said)
		}
	})
}

func TestRecordedChangeOfAContainerThatHasEndedRefusesNoOtherChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		s.pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = `{"revision":"","updateTimestamp":"2000-01-01T00:00:00Z","updateImages":true,"nextContainerImages":{"app":"app:2"},"refit":{}}`
		s.ended["app"] = true
		s.kubelet()
		said, err := s.set(t.Context(), inplacecli.Config{Timeout: time.Minute, Options: plan.Options{ImagesPresent: true}}, images(t, "log=log:2"))
		if err != nil || s.image("log") != "log:2" {
			t.Errorf("%v, image %s; said:\n%s", err, s.image("log"), said)
		}
	})
}

// The restart policy was named as the reason, with which nothing could be done about it.
func TestEnvironmentOfAContainerThatHasEndedIsRefusedAsSuch(t *testing.T) {
	t.Parallel()
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever} {
		s := newServer()
		s.pod.Spec.RestartPolicy, s.ended["app"] = policy, true
		s.kubelet()
		_, err := s.set(t.Context(), inplacecli.Config{}, must(change.Env([]string{"app"}, []string{"LEVEL=debug"})))
		var refused *plan.RefusedError
		if !errors.As(err, &refused) || !refused.Has(plan.ReasonContainerEnded) || refused.Has(plan.ReasonRestartPolicyNever) || len(s.writes) > 0 {
			t.Errorf("%s: %v", policy, err)
		}
	}
}
