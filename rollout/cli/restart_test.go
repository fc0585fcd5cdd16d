package cli_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/table"
	rolloutcli "github.com/refit-project/refit/rollout/cli"
)

// fixture is an API server with a Deployment of two pods. What is created is carried out by finish.
type fixture struct {
	config rolloutcli.Config
	out    bytes.Buffer
	finish func(client.Object)
	err    error // answer to a create
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{finish: func(client.Object) {}}
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), appsv1.AddToScheme(kinds), policyv1.AddToScheme(kinds), v1beta1.AddToScheme(kinds), v1alpha1.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	created := fake.NewClientBuilder().WithScheme(kinds).WithObjects(deployment, pod("web-abc-1"), pod("web-abc-2"), pod("other-abc-3")).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			var options client.CreateOptions
			options.ApplyOptions(opts)
			if f.err != nil || len(options.DryRun) > 0 {
				return f.err
			}
			o.SetName(o.GetGenerateName() + "x")
			o.SetUID(types.UID("uid-of-" + o.GetName()))
			if err := c.Create(ctx, o, opts...); err != nil {
				return err
			}
			stored := o.DeepCopyObject().(client.Object)
			f.finish(stored)
			return c.Update(ctx, stored)
		}}).Build()
	f.config = rolloutcli.Config{API: created, Namespace: "shop", Output: console.NewOutput(&f.out, false), Containers: []string{"app"}, Wait: true}
	return f
}

func pod(name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, Labels: map[string]string{"app": "web", "pod-template-hash": "abc"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: name[:strings.LastIndexByte(name, '-')], Controller: new(true)}},
	}}
	p.Spec.NodeName = "node-1"
	p.Spec.Containers = []corev1.Container{{Name: "app"}, {Name: "log"}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://new", RestartCount: 1, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

// end carries out what was created.
func end(outcome crr.Outcome) func(client.Object) {
	return func(object client.Object) {
		switch o := object.(type) {
		case *v1beta1.ContainerRecreateRequest:
			o.Spec.Containers[0].StatusContext = &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "containerd://old"}
			crr.Complete(&o.Status, outcome, 1, time.Now())
		case *v1alpha1.RestartRollout:
			o.Status.CompletionTime = new(metav1.Now())
			status := metav1.ConditionTrue
			if outcome.Reason != "" {
				status = metav1.ConditionFalse
				o.Status.Failures = []v1alpha1.PodFailure{{Pod: "web-abc-1", Reason: outcome.Reason, Message: outcome.Message}}
			}
			meta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSucceeded, Status: status, Reason: "R", Message: "2 of 2 pods"})
		}
	}
}

func TestParseTarget(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, selector, want string }{
		{"pod/web-0", "", "pod/web-0"},
		{"po/web-0", "", "pod/web-0"},
		{"deployment/web", "", "deployment/web"},
		{"Deploy/web", "", "deployment/web"},
		{"sts/web", "", "statefulset/web"},
		{"cloneset/web", "", "cloneset/web"},
		{"deployment.apps/web", "", "deployment/web"},
		{"deployment.v1.apps/web", "", "deployment/web"},
		{"Deployments.Apps/web", "", "deployment/web"},
		{"cloneset.apps.kruise.io/web", "", "cloneset/web"},
		{"cloneset.apps/web", "", ""},
		{"deployment.apps.kruise.io/web", "", ""},
		{"deployment.extensions/web", "", ""},
		{"deployment.apps", "", ""},
		{"", "app=web,tier!=db", "selector app in (web),tier notin (db)"},
		{"", "", ""},
		{"web", "", ""},
		{"pod/", "", ""},
		{"pod/a/b", "", ""},
		{"job/web", "", ""},
		{"pod/web", "app=web", ""},
		{"", "app in web", ""},
		{"", "a in (y,x),!b,c", "selector a in (x,y),!b,c"},
		{"", "size>3", ""},
	} {
		target, err := rolloutcli.ParseTarget(tt.text, tt.selector)
		if tt.want == "" {
			if !errors.Is(err, console.ErrUsage) || console.ExitCode(err) != 2 {
				t.Errorf("%q, %q: %v, %v", tt.text, tt.selector, target, err)
			}
			continue
		}
		if err != nil || target.String() != tt.want {
			t.Errorf("%q, %q: %v, %v", tt.text, tt.selector, target, err)
		}
	}
}

func TestRunFollowsARestartToItsEnd(t *testing.T) {
	t.Parallel()
	failed := crr.Outcome{Reason: crr.ReasonStopFailed, Message: "runtime is gone"}
	for name, tt := range map[string]struct {
		target  string
		outcome crr.Outcome
		code    int
		words   []string
	}{
		"pod":               {"pod/web-abc-1", crr.Outcome{}, 0, []string{"restart container app of pod web-abc-1", "restarted in", "containerd://old -> containerd://new, restarts 0 -> 1"}},
		"pod, failed":       {"pod/web-abc-1", failed, 1, []string{"StopFailed", "runtime is gone"}},
		"no such pod":       {"pod/gone", crr.Outcome{}, 1, []string{"not found"}},
		"workload":          {"deployment/web", crr.Outcome{}, 0, []string{"restart container app of 2 pods of deployment/web", "2 of 2 pods"}},
		"workload, failed":  {"deployment/web", failed, 1, []string{"pod web-abc-1: StopFailed: runtime is gone", "RestartRollout web-x: R"}},
		"no such workload":  {"deployment/gone", crr.Outcome{}, 1, []string{"not found"}},
		"no such pods":      {"selector", crr.Outcome{}, 1, []string{"no pod in namespace shop matches --selector=app in (none)"}},
		"pods of selectors": {"", crr.Outcome{}, 0, []string{"3 pods of selector app in (web)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.finish = end(tt.outcome)
			selector := map[string]string{"": "app=web", "selector": "app=none"}[tt.target]
			target, err := rolloutcli.ParseTarget(strings.TrimPrefix(tt.target, "selector"), selector)
			if err != nil {
				t.Fatal(err)
			}
			err = rolloutcli.Run(t.Context(), f.config, target)
			text := f.out.String()
			if err != nil {
				text += err.Error()
			}
			if console.ExitCode(err) != tt.code {
				t.Errorf("exit code %d: %s", console.ExitCode(err), text)
			}
			for _, words := range tt.words {
				if !strings.Contains(text, words) {
					t.Errorf("no %q in:\n%s", words, text)
				}
			}
		})
	}
}

// For example under the CRDs of OpenKruise up to 1.9, which have no conditions.
func TestRestartOfARequestWithoutConditions(t *testing.T) {
	t.Parallel()
	for phase, code := range map[v1beta1.ContainerRecreateRequestPhase]int{v1beta1.ContainerRecreateRequestSucceeded: 0, v1beta1.ContainerRecreateRequestFailed: 1} {
		f := newFixture(t)
		f.finish = func(object client.Object) {
			request := object.(*v1beta1.ContainerRecreateRequest)
			request.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: phase}}
			end(crr.Outcome{})(object)
			request.Status.Conditions = nil
		}
		if err := run(t, f, "pod/web-abc-1"); console.ExitCode(err) != code {
			t.Errorf("%s: exit code %d: %v\n%s", phase, console.ExitCode(err), err, f.out.String())
		}
	}
}

func run(t *testing.T, f *fixture, of string) error {
	t.Helper()
	target, err := rolloutcli.ParseTarget(of, "")
	if err != nil {
		t.Fatal(err)
	}
	return rolloutcli.Run(t.Context(), f.config, target)
}

func TestContainersMustBeNamedIfThereAreSeveral(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"pod/web-abc-1", "deployment/web"} {
		f := newFixture(t)
		f.config.Containers = nil
		if err := run(t, f, of); console.ExitCode(err) != 2 || !strings.Contains(err.Error(), "app, log") {
			t.Errorf("%s: %v", of, err)
		}
	}
}

func TestRefusalsExitWith2(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.err = apierrors.NewBadRequest("spec.containers[0].name: no such container")
	if err := run(t, f, "deployment/web"); console.ExitCode(err) != 2 || !strings.Contains(err.Error(), "no such container") {
		t.Errorf("%v", err)
	}
}

// Scripts read the name of what was made.
func TestNameOfTheCreatedObjectIsPrinted(t *testing.T) {
	t.Parallel()
	for of, want := range map[string]string{"pod/web-abc-1": "containerrecreaterequest.apps.kruise.io/web-abc-1-x\n", "deployment/web": "restartrollout.refit.dev/web-x\n"} {
		f := newFixture(t)
		f.finish = end(crr.Outcome{})
		var names bytes.Buffer
		f.config.Made = table.Made{Out: &names, Format: "name"}
		if err := run(t, f, of); err != nil || names.String() != want {
			t.Errorf("%s: %q, %v", of, names.String(), err)
		}
		names.Reset()
		f.config.DryRun = true
		if err := run(t, f, of); err != nil || names.Len() > 0 {
			t.Errorf("dry run of %s: %q, %v", of, names.String(), err)
		}
	}
}

func TestDryRunExplainsAndDoesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.config.DryRun = true
	f.config.Rollout.MaxUnavailable = new(intstr.FromInt32(1))
	if err := run(t, f, "deployment/web"); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"2 pods would be restarted", "at once: pod web-abc-1", "1 pod is left; 1 of 2 pods may be unavailable"} {
		if !strings.Contains(f.out.String(), words) {
			t.Errorf("no %q in:\n%s", words, f.out.String())
		}
	}
	var list v1alpha1.RestartRolloutList
	if err := f.config.API.List(t.Context(), &list); err != nil || len(list.Items) != 0 {
		t.Errorf("%v, %v", list.Items, err)
	}
}

func TestTimeoutAndInterruptLeaveTheRestartAndSayHowToStopIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for of, words := range map[string]string{"deployment/web": "kubectl refit rollout pause restartrollout/web-x --namespace=shop", "pod/web-abc-1": "kubectl delete crr web-abc-1-x"} {
			f := newFixture(t)
			f.config.Timeout = 10 * time.Millisecond
			if err := run(t, f, of); console.ExitCode(err) != 124 || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v", of, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			f = newFixture(t)
			f.finish = func(client.Object) { cancel() }
			target, err := rolloutcli.ParseTarget(of, "")
			if err != nil {
				t.Fatal(err)
			}
			if err := rolloutcli.Run(ctx, f.config, target); console.ExitCode(err) != 130 {
				t.Errorf("%s: %v", of, err)
			}
		}
	})
}
