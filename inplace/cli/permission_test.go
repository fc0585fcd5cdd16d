package cli_test

import (
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/kubelet"
)

// The change stops no container, and at its end the pod, which an earlier update has left out of its Services, is put back.
func TestMissingPermissionToPutThePodBackIsFoundBeforeAnyWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(v1beta1.ReadinessGateInPlaceUpdateReady)
		kubelet.Condition(&s.pod.Status, v1beta1.ReadinessGateInPlaceUpdateReady).Status = corev1.ConditionFalse
		s.kubelet()
		s.denied = []string{"patch pods/status"}
		_, err := s.set(t.Context(), inplacecli.Config{}, must(change.Resources(change.Sizes{Containers: []string{"app"}, Requests: "cpu=200m"})))
		if console.ExitCode(err) != console.ExitRefused || !strings.Contains(err.Error(), "patch pods/status") || len(s.writes) > 0 {
			t.Errorf("%v after the writes %q", err, s.writes)
		}
	})
}

func TestRightThatIsMissingToWaitIsNamedWithTheFlagThatAvoidsIt(t *testing.T) {
	t.Parallel()
	for right, flag := range map[string]string{
		"list pods": "--max-unavailable=100% and --ignore-pod-disruption-budgets",
		"list containerrecreaterequests.apps.kruise.io": "--max-unavailable=100% and --ignore-pod-disruption-budgets",
		"list poddisruptionbudgets.policy":              "with --ignore-pod-disruption-budgets they",
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorkload(t, 1)
			w.servers[0].denied = []string{right}
			command := <-w.start(t.Context(), 0, inplacecli.Config{}, images(t, "app=app:2"))
			if console.ExitCode(command.err) != console.ExitRefused || !strings.Contains(command.err.Error(), "no permission to "+right) ||
				!strings.Contains(command.err.Error(), flag) || len(w.servers[0].writes) > 0 {
				t.Errorf("%v, writes %v", command.err, w.servers[0].writes)
			}
		})
	}
}

// Nobody has the right to list what does not exist, unless they have all rights.
func TestRequestsThatTheClusterDoesNotHaveNeedNoRight(t *testing.T) {
	t.Parallel()
	for _, lacks := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorkload(t, 2)
			w.lacks, w.servers[0].denied = lacks, []string{"list containerrecreaterequests.apps.kruise.io"}
			command := <-w.start(t.Context(), 0, inplacecli.Config{}, images(t, "app=app:2"))
			if lacks && command.err != nil {
				t.Errorf("%v; said:\n%s", command.err, command.said)
			}
			if role := "ClusterRole refit-containerrecreaterequest-viewer"; !lacks && (command.err == nil || !strings.Contains(command.err.Error(), role)) {
				t.Errorf("%v does not name the %s", command.err, role)
			}
		})
	}
}

// An update needs the rights for what it does, and no others: a role may be made for changes of one kind.
func TestRightsThatAnUpdateNeeds(t *testing.T) {
	t.Parallel()
	const pods, status, resize, restart = "patch pods", "patch pods/status", "patch pods/resize", "create containerrecreaterequests.apps.kruise.io"
	app, level := must(change.Image([]string{"app=app:2"})), must(change.Env(nil, []string{"LEVEL=debug"}))
	cpu := must(change.Resources(change.Sizes{Containers: []string{"app"}, Requests: "cpu=200m"}))
	for name, tt := range map[string]struct {
		change change.Change
		gated  bool
		want   string
	}{
		"an image":                     {app, false, pods},
		"an image, and a gate":         {app, true, pods + ", " + status},
		"resources":                    {cpu, false, pods + ", " + resize},
		"resources, and a gate":        {cpu, true, pods + ", " + resize},
		"an environment":               {level, false, pods + ", " + restart},
		"an environment, and a gate":   {level, true, pods + ", " + status + ", " + restart},
		"an image and its environment": {both(app, level), false, pods},
		"the image of another":         {both(must(change.Image([]string{"log=log:2"})), level), false, pods + ", " + restart},
	} {
		s := newServer()
		if tt.gated {
			s = newServer(v1beta1.ReadinessGateKruisePodReady)
		}
		s.denied = []string{pods, status, resize, restart, "list pods", "list poddisruptionbudgets.policy", "list containerrecreaterequests.apps.kruise.io"}
		_, err := s.set(t.Context(), inplacecli.Config{DryRun: true}, tt.change)
		if console.ExitCode(err) != console.ExitRefused || !strings.HasSuffix(err.Error(), "you have no permission to "+tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
