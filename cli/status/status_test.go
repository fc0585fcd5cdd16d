package status_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/status"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/image/jobplan"
	"github.com/refit-project/refit/internal/table"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func at(minutes int) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))
}

func object(namespace, name string, created int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: at(created), Annotations: map[string]string{v1beta1.AnnotationRequestedBy: "alice"}}
}

func request(namespace, name string, created int) *v1beta1.ContainerRecreateRequest {
	r := &v1beta1.ContainerRecreateRequest{ObjectMeta: object(namespace, name, created)}
	r.Spec.PodName = "web-0"
	r.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{Name: "app"}}
	return r
}

func ended(r *v1beta1.ContainerRecreateRequest, outcome crr.Outcome, minutes int) *v1beta1.ContainerRecreateRequest {
	crr.Complete(&r.Status, outcome, 1, at(minutes).Time)
	return r
}

func rollout(change func(*v1alpha1.RestartRollout)) *v1alpha1.RestartRollout {
	r := &v1alpha1.RestartRollout{ObjectMeta: object("shop", "web-x", -5)}
	r.Spec.TargetRef = &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	r.Status = v1alpha1.RestartRolloutStatus{RolloutPods: v1alpha1.RolloutPods{MatchedPods: 5}, RestartedPods: 2, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: "MaxUnavailable", Message: "1 of 5 pods is unavailable"}}}
	if change != nil {
		change(r)
	}
	return r
}

func policy(changes ...metav1.Condition) *v1alpha1.InPlaceUpdatePolicy {
	p := &v1alpha1.InPlaceUpdatePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", CreationTimestamp: at(-300)}}
	p.Spec.TargetRef = v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	p.Status.MatchedPods, p.Status.UpdatedReadyPods, p.Status.Conditions = 5, 2, changes
	return p
}

func pull(change func(*v1beta1.ImagePullJobStatus)) *v1beta1.ImagePullJob {
	j := &v1beta1.ImagePullJob{ObjectMeta: object("shop", "warm", -4)}
	j.Spec.Image = "app:2"
	j.Status = v1beta1.ImagePullJobStatus{Desired: 3, Succeeded: 1, StartTime: new(at(-4))}
	if change != nil {
		change(&j.Status)
	}
	return j
}

func cluster(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), v1beta1.AddToScheme(kinds), v1alpha1.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(kinds).WithObjects(objects...).Build()
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	begun := request("shop", "r", -1)
	begun.Status.Phase, begun.Status.Message = v1beta1.ContainerRecreateRequestRecreating, "container app: stopped"
	end := func(condition, reason string) func(*v1alpha1.RestartRollout) {
		return func(r *v1alpha1.RestartRollout) {
			r.Status.CompletionTime = new(at(0))
			r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: reason, Message: "m"})
		}
	}
	for name, tc := range map[string]struct {
		object client.Object
		want   string
	}{
		"new request":       {request("shop", "r", -1), "crr/r pod/web-0 Waiting 0/1 alice "},
		"request under way": {begun, "crr/r pod/web-0 Recreating 0/1 alice container app: stopped"},
		"done":              {ended(request("shop", "r", -1), crr.Outcome{}, 0), "crr/r pod/web-0 Succeeded 0/1 alice "},
		"failed":            {ended(request("shop", "r", -1), crr.Outcome{Reason: crr.ReasonStopFailed, Message: "gone"}, 0), "crr/r pod/web-0 Failed 0/1 alice StopFailed: gone"},
		"rollout":           {rollout(nil), "restartrollout/web-x deployment/web MaxUnavailable 2/5 alice 1 of 5 pods is unavailable"},
		"busy rollout":      {rollout(func(r *v1alpha1.RestartRollout) { r.Status.RestartingPods = 1 }), "restartrollout/web-x deployment/web Restarting 2/5 alice 1 of 5 pods is unavailable"},
		"new rollout":       {rollout(func(r *v1alpha1.RestartRollout) { r.Status = v1alpha1.RestartRolloutStatus{} }), "restartrollout/web-x deployment/web Waiting 0/0 alice "},
		"scheduled rollout": {rollout(func(r *v1alpha1.RestartRollout) {
			r.Annotations[v1alpha1.AnnotationTrigger] = "RestartSchedule/nightly"
		}), "restartrollout/web-x deployment/web MaxUnavailable 2/5 RestartSchedule/nightly 1 of 5 pods is unavailable"},
		"done rollout":   {rollout(end(v1alpha1.ConditionSucceeded, "Restarted")), "restartrollout/web-x deployment/web Succeeded 2/5 alice Restarted: m"},
		"failed rollout": {rollout(end(v1alpha1.ConditionFailed, "PodsFailed")), "restartrollout/web-x deployment/web Failed 2/5 alice PodsFailed: m"},
		"new policy":     {policy(), "inplaceupdatepolicy/web deployment/web Waiting 2/5  "},
		"update": {policy(metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: "Updating", Message: "3 pods are left"}),
			"inplaceupdatepolicy/web deployment/web Updating 2/5  3 pods are left"},
		"second policy": {policy(metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: "Conflicted", Message: "m"}),
			"inplaceupdatepolicy/web deployment/web Conflicted 2/5  m"},
		"done update": {policy(metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Message: "all", LastTransitionTime: at(-3)}),
			"inplaceupdatepolicy/web deployment/web Succeeded 2/5  all"},
		"new pull":  {pull(func(s *v1beta1.ImagePullJobStatus) { s.StartTime = nil }), "imagepulljob/warm app:2 Waiting 1/3 alice "},
		"pull":      {pull(nil), "imagepulljob/warm app:2 Pulling 1/3 alice "},
		"done pull": {pull(func(s *v1beta1.ImagePullJobStatus) { s.Succeeded, s.CompletionTime = 3, new(at(0)) }), "imagepulljob/warm app:2 Succeeded 3/3 alice "},
		"no node":   {pull(func(s *v1beta1.ImagePullJobStatus) { s.Desired, s.Succeeded, s.CompletionTime = 0, 0, new(at(0)) }), "imagepulljob/warm app:2 NoNodes 0/0 alice "},
		"no image": {pull(func(s *v1beta1.ImagePullJobStatus) {
			s.Desired, s.Succeeded, s.CompletionTime, s.Message = 0, 0, new(at(0)), "invalid reference"
			s.Conditions = []metav1.Condition{{Type: v1beta1.ConditionPullFailed, Status: metav1.ConditionTrue, Reason: jobplan.ReasonInvalidImage}}
		}), "imagepulljob/warm app:2 InvalidImage 0/0 alice invalid reference"},
		"failed pull": {pull(func(s *v1beta1.ImagePullJobStatus) { s.Failed, s.CompletionTime, s.Message = 2, new(at(0)), "no" }), "imagepulljob/warm app:2 Failed 1/3 alice no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := status.Describe(tc.object)
			if got := strings.Join([]string{l.Name, l.Target, l.State, l.Done, l.By, l.Detail}, " "); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	objects := []client.Object{
		ended(request("shop", "old", -300), crr.Outcome{}, -200), ended(request("shop", "recent", -50), crr.Outcome{}, -49), request("shop", "now", -1),
		request("other", "elsewhere", -2), rollout(nil), policy(metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: at(-200)}),
	}
	for name, tc := range map[string]struct {
		namespace, format string
		since             time.Duration
		want              string
	}{
		"table": {"shop", "", time.Hour, `NAME                   TARGET           STATE            DONE   REQUESTED BY   AGE
crr/recent             pod/web-0        Succeeded        0/1    alice          50m
restartrollout/web-x   deployment/web   MaxUnavailable   2/5    alice          5m
crr/now                pod/web-0        Waiting          0/1    alice          60s
`},
		"all namespaces": {"", "", time.Hour, `NAMESPACE   NAME                   TARGET           STATE            DONE   REQUESTED BY   AGE
shop        crr/recent             pod/web-0        Succeeded        0/1    alice          50m
shop        restartrollout/web-x   deployment/web   MaxUnavailable   2/5    alice          5m
other       crr/elsewhere          pod/web-0        Waiting          0/1    alice          2m
shop        crr/now                pod/web-0        Waiting          0/1    alice          60s
`},
		"names of everything": {"shop", "name", 0, "containerrecreaterequest.apps.kruise.io/old\ninplaceupdatepolicy.refit.dev/web\ncontainerrecreaterequest.apps.kruise.io/recent\nrestartrollout.refit.dev/web-x\ncontainerrecreaterequest.apps.kruise.io/now\n"},
		"nothing":             {"empty", "", time.Hour, "nothing under way, and nothing that ended in the last 1h0m0s (--all shows everything) in namespace empty\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			config := status.Config{API: cluster(t, objects...), Namespace: tc.namespace, Options: table.Options{Format: tc.format}, Since: tc.since, Now: func() time.Time { return noon }}
			if err := status.Run(t.Context(), config, &out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	var out bytes.Buffer
	config := status.Config{API: cluster(t, objects...), Namespace: "shop", Options: table.Options{Format: "wide"}, Now: func() time.Time { return noon }}
	if err := status.Run(t.Context(), config, &out); err != nil || !strings.Contains(out.String(), "1 of 5 pods is unavailable") {
		t.Errorf("%v\n%s", err, out.String())
	}
	out.Reset()
	config.Format = "json"
	if err := status.Run(t.Context(), config, &out); err != nil || !strings.Contains(out.String(), `"kind": "RestartRollout"`) {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// lines hands over what is written, a line at a time.
type lines struct {
	mutex sync.Mutex
	text  []byte
	to    chan string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.text = append(l.text, p...)
	for {
		line, rest, found := bytes.Cut(l.text, []byte("\n"))
		if !found {
			return len(p), nil
		}
		l.text = rest
		l.to <- string(line)
	}
}

func TestWatchPrintsEachChangeOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	watches := make(chan struct{}, 4) // one for each kind
	api := interceptor.NewClient(cluster(t, ended(request("shop", "old", -50), crr.Outcome{}, -49), request("shop", "now", -1)), interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
			changes, err := c.Watch(ctx, list, options...)
			watches <- struct{}{}
			return changes, err
		},
	})
	out := &lines{to: make(chan string, 10)}
	done := make(chan error, 1)
	go func() {
		done <- status.Watch(ctx, status.Config{API: api, Namespace: "shop", Now: func() time.Time { return noon }}, out)
	}()
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-out.to:
			if got != "12:00:00 "+want {
				t.Errorf("got %q, want %q", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no %q", want)
		}
	}
	expect("crr/now pod/web-0 Waiting 0/1") // what ended before is not told
	for range cap(watches) {
		<-watches // an API server also sends what has changed since the list; the fake one does not
	}
	stored := &v1beta1.ContainerRecreateRequest{}
	if err := api.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "now"}, stored); err != nil {
		t.Fatal(err)
	}
	stored.Labels = map[string]string{"nothing": "shown"}
	if err := api.Update(ctx, stored); err != nil {
		t.Fatal(err)
	}
	if err := api.Update(ctx, ended(stored, crr.Outcome{}, 0)); err != nil {
		t.Fatal(err)
	}
	expect("crr/now pod/web-0 Succeeded 0/1")
	if err := api.Create(ctx, rollout(func(r *v1alpha1.RestartRollout) { r.ResourceVersion = "" })); err != nil {
		t.Fatal(err)
	}
	expect("restartrollout/web-x deployment/web MaxUnavailable 2/5 1 of 5 pods is unavailable")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(out.to) > 0 {
		t.Errorf("also said %q", <-out.to)
	}
}
