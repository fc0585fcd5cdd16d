package cli_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/console"
	rolloutcli "github.com/refit-project/refit/rollout/cli"
)

// created are the objects that are in the cluster, which a refused restart leaves as it is.
func (f *fixture) created(t *testing.T) int {
	t.Helper()
	var rollouts v1alpha1.RestartRolloutList
	var requests v1beta1.ContainerRecreateRequestList
	if err := errors.Join(f.config.API.List(t.Context(), &rollouts), f.config.API.List(t.Context(), &requests)); err != nil {
		t.Fatal(err)
	}
	return len(rollouts.Items) + len(requests.Items)
}

func TestContainerThatNoPodHasIsRefusedBeforeARolloutIsCreated(t *testing.T) {
	t.Parallel()
	for _, dryRun := range []bool{false, true} {
		f := newFixture(t)
		f.config.Containers, f.config.DryRun = []string{"app", "nope"}, dryRun
		err := run(t, f, "deployment/web")
		if console.ExitCode(err) != 2 || !strings.Contains(err.Error(), `the pods of deployment/web have no container "nope" that can be restarted; they have app, log`) {
			t.Errorf("dry run %t: %v", dryRun, err)
		}
		if n := f.created(t); n > 0 {
			t.Errorf("dry run %t: %d objects created", dryRun, n)
		}
	}
}

// Without the gate the drain would be left out, and nothing would say so.
func TestDrainOfAPodWithoutReadinessGateIsRefused(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"pod/web-abc-1", "deployment/web"} {
		for _, dryRun := range []bool{false, true} {
			f := newFixture(t)
			f.config.DrainSeconds, f.config.DryRun = new(int32(3)), dryRun
			err := run(t, f, of)
			if console.ExitCode(err) != 2 || !strings.Contains(err.Error(), "pod web-abc-1 has no readiness gate KruisePodReady, so it cannot be drained") ||
				!strings.Contains(err.Error(), "leave --drain-seconds out") {
				t.Errorf("%s, dry run %t: %v", of, dryRun, err)
			}
			if n := f.created(t); n > 0 {
				t.Errorf("%s: %d objects created", of, n)
			}
		}
	}
}

func TestDrainOfAPodWithReadinessGateIsRequested(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.finish = end(crr.Outcome{})
	for _, name := range []string{"web-abc-1", "web-abc-2"} {
		p := &corev1.Pod{}
		if err := f.config.API.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, p); err != nil {
			t.Fatal(err)
		}
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}}
		if err := f.config.API.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	f.config.DrainSeconds = new(int32(3))
	for _, of := range []string{"pod/web-abc-1", "deployment/web"} {
		if err := run(t, f, of); err != nil {
			t.Errorf("%s: %v", of, err)
		}
	}
}

// A container that ends a moment after its start is not restarted then.
func TestMinReadySecondsOfOnePodAreInItsRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.finish = end(crr.Outcome{})
	f.config.MinReadySeconds = new(int32(7))
	if err := run(t, f, "pod/web-abc-1"); err != nil {
		t.Fatal(err)
	}
	var request v1beta1.ContainerRecreateRequest
	if err := f.config.API.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-abc-1-x"}, &request); err != nil || request.Spec.Strategy.MinStartedSeconds != 7 {
		t.Errorf("%v, %+v", err, request.Spec.Strategy)
	}
}

// What ends the wait is the command's own time, whatever call it is in.
func TestTimeoutNamesWhatKubeletWaitsFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		p := &corev1.Pod{}
		if err := f.config.API.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-abc-1"}, p); err != nil {
			t.Fatal(err)
		}
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}}
		if err := f.config.API.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		f.config.Timeout = 10 * time.Millisecond
		err := run(t, f, "pod/web-abc-1")
		if console.ExitCode(err) != 124 || !strings.HasPrefix(err.Error(), "the restart is not done in time; the restart continues\n  last:      container app: ErrImagePull: not found\n") {
			t.Errorf("%v", err)
		}
	})
}

func TestTimeoutInTheFirstCallIsNoErrorOfTheAPIServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for of, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
			"the restart is not done in time": context.WithCancel,
			"interrupted": func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				return ctx, cancel
			},
		} {
			ctx, cancel := end(t.Context())
			f := newFixture(t)
			f.config.API = interceptor.NewClient(f.config.API, interceptor.Funcs{Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
				<-ctx.Done()
				return &url.Error{Op: "Get", URL: "https://api", Err: ctx.Err()}
			}})
			f.config.Timeout = 10 * time.Millisecond
			target, err := rolloutcli.ParseTarget("pod/web-abc-1", "")
			if err != nil {
				t.Fatal(err)
			}
			if err := rolloutcli.Run(ctx, f.config, target); err == nil || err.Error() != of {
				t.Errorf("%v, want %s", err, of)
			}
			cancel()
		}
	})
}

// The message of the webhook is shown, without the text that the API server adds to it.
func TestRefusalOfAWebhookIsShownWithoutItsName(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.err = apierrors.NewBadRequest(`admission webhook "mcontainerrecreaterequest.kb.io" denied the request: spec.podName: no found Pod named web`)
	if err := run(t, f, "pod/web-abc-1"); !errors.Is(err, console.ErrRefused) || err.Error() != "refused: spec.podName: no found Pod named web" {
		t.Errorf("%v", err)
	}
}

func TestProgressIsShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.finish = func(object client.Object) {
			object.(*v1alpha1.RestartRollout).Status = v1alpha1.RestartRolloutStatus{ObservedGeneration: 1, RolloutPods: v1alpha1.RolloutPods{MatchedPods: 4}, RestartedPods: 1, RestartingPods: 1}
		}
		f.config.Timeout = 10 * time.Millisecond
		if err := run(t, f, "deployment/web"); !errors.Is(err, console.ErrTimeout) {
			t.Fatal(err)
		}
		if !strings.Contains(f.out.String(), "[#####---------------] 1 of 4 pods restarted, 1 under way, 0 failed") {
			t.Error(f.out.String())
		}
	})
}
