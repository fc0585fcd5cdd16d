package cli_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/refit-project/refit/api/v1beta1"
	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/console"
)

func TestDryRunExplainsAndWritesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change change.Change
		pod    func(*cluster)
		want   []string
		drain  int32
	}{
		"an image": {change: must(change.Image([]string{"app=app:2"})), want: []string{
			"container app: set its image to app:2", "not stopped: log", "no readiness gate KruisePodReady or InPlaceUpdateReady", "pulled while its container is down",
		}},
		"resources": {change: must(change.Resources(change.Sizes{Containers: []string{"app"}, Requests: "cpu=200m"})), want: []string{
			"resize container app to requests.cpu=200m", "no container is stopped",
		}},
		"an environment": {change: must(change.Env(nil, []string{"LEVEL=debug"})), want: []string{"set level=debug", "restarted by refit-daemon"}},
		"a pod that is drained": {
			change: must(change.Image([]string{"*=new:1"})),
			pod: func(c *cluster) {
				c.pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateInPlaceUpdateReady}}
			},
			want:  []string{"container app: set its image to new:1", "container log: set its image to new:1", "taken out of its Services (readiness gate InPlaceUpdateReady), for at least 7 s"},
			drain: 7,
		},
		"an owner of another template": {
			change: must(change.Image([]string{"app=app:2"})),
			pod: func(c *cluster) {
				c.pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-5d", Controller: new(true)}}
				c.template = plan.Template(c.pod)
			},
			want: []string{"warning: the pod is owned by ReplicaSet web-5d, whose pod template differs"},
		},
		"an owner that may not be read": {
			change: must(change.Image([]string{"app=app:2"})),
			pod: func(c *cluster) {
				c.pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-5d", Controller: new(true)}}
			},
			want: []string{"could not be read: forbidden"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := &cluster{pod: web()}
			if tt.pod != nil {
				tt.pod(api)
			}
			said, err := update(t, api, inplacecli.Config{DryRun: true, Options: plan.Options{DrainSeconds: tt.drain}}, tt.change)
			if err != nil || api.writes > 0 {
				t.Fatalf("%v, %d writes", err, api.writes)
			}
			for _, words := range tt.want {
				if !strings.Contains(said, words) {
					t.Errorf("%q is not in:\n%s", words, said)
				}
			}
		})
	}
}

func TestRefusedChangesNothingAndExitsWith2(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change change.Change
		pod    func(*corev1.Pod)
		words  []string
		code   int
	}{
		"an unknown container":         {must(change.Image([]string{"gone=x"})), nil, []string{`no container "gone"`, "app, log, setup"}, 2},
		"an init container":            {must(change.Image([]string{"setup=setup:2"})), nil, []string{"runs once"}, 2},
		"another QoS class":            {must(change.Resources(change.Sizes{Requests: "cpu=1,memory=1Gi", Limits: "cpu=1,memory=1Gi"})), func(pod *corev1.Pod) { pod.Spec.InitContainers = nil }, []string{"QoS class", "Burstable to Guaranteed"}, 2},
		"a variable with a value":      {must(change.Env(nil, []string{"FIXED=y"})), nil, []string{"env FIXED", "annotation"}, 2},
		"a variable that is not there": {must(change.Env(nil, []string{"NEW=y"})), nil, []string{"no container has this variable"}, 2},
		"a malformed record": {must(change.Image([]string{"app=app:2"})), func(pod *corev1.Pod) {
			pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = "{"
		}, []string{v1beta1.AnnotationInPlaceUpdateState, "remove the annotation"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := &cluster{pod: web()}
			if tt.pod != nil {
				tt.pod(api.pod)
			}
			_, err := update(t, api, inplacecli.Config{}, tt.change)
			if console.ExitCode(err) != tt.code || api.writes > 0 {
				t.Fatalf("%v: exit code %d, %d writes", err, console.ExitCode(err), api.writes)
			}
			for _, words := range tt.words {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%q is not in: %v", words, err)
				}
			}
		})
	}
}

// As with kubectl, so that a script can be run again.
func TestPodThatHasWhatWasAskedForIsUnchanged(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]change.Change{
		"an image":       must(change.Image([]string{"app=app:1"})),
		"an environment": must(change.Env(nil, []string{"LEVEL=" + web().Annotations["level"]})),
	} {
		for _, dry := range []bool{false, true} {
			api := &cluster{pod: web()}
			said, err := update(t, api, inplacecli.Config{DryRun: dry}, to)
			if err != nil || api.writes > 0 || !strings.Contains(said, "pod/web unchanged") {
				t.Errorf("%s, dry run %t: %v, %d writes; said:\n%s", name, dry, err, api.writes, said)
			}
		}
	}
}

func TestWhatTheUserTypedIsChecked(t *testing.T) {
	t.Parallel()
	for name, parse := range map[string]func() error{
		"no image":       func() error { _, err := change.Image([]string{"app"}); return err },
		"an image twice": func() error { _, err := change.Image([]string{"app=a", "log=b", "app=c"}); return err },
		"a value twice":  func() error { _, err := change.Env(nil, []string{"A=1", "A=2"}); return err },
		"a limit twice":  func() error { _, err := change.Resources(change.Sizes{Limits: "cpu=1,cpu=2"}); return err },
		"no container":   func() error { _, err := change.Image([]string{"=x"}); return err },
		"no quantity":    func() error { _, err := change.Resources(change.Sizes{Limits: "cpu=lots"}); return err },
		"no resources":   func() error { _, err := change.Resources(change.Sizes{}); return err },
		"no variable":    func() error { _, err := change.Env(nil, nil); return err },
		"a workload":     func() error { _, err := inplacecli.ParseTarget("deployment/web"); return err },
		"a name alone":   func() error { _, err := inplacecli.ParseTarget("web"); return err },
		"a pod of parts": func() error { _, err := inplacecli.ParseTarget("pod/web/app"); return err },
	} {
		if err := parse(); !errors.Is(err, console.ErrUsage) || console.ExitCode(err) != console.ExitRefused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The API server takes every write and shows no effect: the update is not done in time, and the user is told what it waits
// for.
func TestTimeoutNamesWhatWasWaitedFor(t *testing.T) {
	t.Parallel()
	api := &cluster{pod: web()}
	api.pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = `{"revision":"","updateTimestamp":null,"lastContainerStatuses":{"app":{"imageID":"x"}},"updateImages":true}`
	api.pod.Spec.Containers[0].Image = "app:2"
	said, err := update(t, api, inplacecli.Config{Timeout: 50 * time.Millisecond}, must(change.Image([]string{"app=app:2"})))
	if console.ExitCode(err) != console.ExitTimeout || !strings.Contains(err.Error(), "waiting for kubelet to report container app") {
		t.Errorf("%v; said:\n%s", err, said)
	}
	if !strings.Contains(said, "the change was requested before; waiting until it is done") {
		t.Errorf("said:\n%s", said)
	}
}

func TestChangesThatTheAPIServerWouldRefuseAreReportedBeforeAnyWrite(t *testing.T) {
	t.Parallel()
	api := &cluster{pod: web(), try: func(subresource string) error {
		if subresource != "resize" {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("exceeded quota"))
	}}
	_, err := update(t, api, inplacecli.Config{}, must(change.Resources(change.Sizes{Containers: []string{"app"}, Requests: "cpu=2"})))
	if console.ExitCode(err) != console.ExitRefused || !strings.Contains(err.Error(), "resize container app") || !strings.Contains(err.Error(), "exceeded quota") || api.writes > 0 {
		t.Errorf("%v after %d writes", err, api.writes)
	}
}

// What it would refuse again is refused; whatever else is wrong with it may be over when the update is made.
func TestOnlyWhatTheAPIServerWouldRefuseAgainIsRefusedBeforehand(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	for name, tt := range map[string]struct {
		err     error
		refused bool
	}{
		"invalid":      {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web", nil), true},
		"forbidden":    {apierrors.NewForbidden(pods, "web", errors.New("exceeded quota")), true},
		"bad request":  {apierrors.NewBadRequest("no"), true},
		"a conflict":   {apierrors.NewConflict(pods, "web", errors.New("changed")), false},
		"out of order": {apierrors.NewInternalError(errors.New("webhook")), false},
		"unreachable":  {refused(), false},
	} {
		api := &cluster{pod: web(), try: func(string) error { return tt.err }}
		_, err := update(t, api, inplacecli.Config{DryRun: true}, must(change.Image([]string{"app=app:2"})))
		if (err != nil) != tt.refused || tt.refused && console.ExitCode(err) != console.ExitRefused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTargetsAreNamedAsInKubectl(t *testing.T) {
	t.Parallel()
	for text, name := range map[string]string{
		"pod/web": "web", "pods/web": "web", "po/web": "web", "Pod/web": "web", "pod/": "", "/web": "", "web": "", "": "", "deployment/web": "", "pod/a/b": "",
	} {
		target, err := inplacecli.ParseTarget(text)
		if (err == nil) != (name != "") || err == nil && target != (inplacecli.Target{Kind: inplacecli.KindPod, Name: name}) {
			t.Errorf("%q: %+v, %v", text, target, err)
		}
	}
}
