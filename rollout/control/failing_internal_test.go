package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout"
)

var errAway = errors.New("the API server is away")

// failing fails calls, such as "get *v1.Pod", that contain the text.
func failing(to client.Client, text string) client.WithWatch {
	fails := func(call string, object any) error {
		if strings.Contains(fmt.Sprintf("%s %T", call, object), text) {
			return errAway
		}
		return nil
	}
	return interceptor.NewClient(to.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return errors.Join(fails("get", o), c.Get(ctx, k, o, opts...))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := fails("list", list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if err := fails("write", o); err != nil {
				return err
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := fails("delete", o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	})
}

// What cannot be read is not decided about: a budget or a request that is missing would let too many pods be restarted.
func TestARolloutStartsNothingWhileSomethingCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"get *v1alpha1.RestartRollout", "list *v1.PodList", "list *v1.PodDisruptionBudgetList", "list *v1beta1.ContainerRecreateRequestList"} {
		a := newAPIServer(t, deployment(), podOf("web-abc", 0), object())
		a.reconciler.client = failing(a.Client, call)
		if _, err := a.reconciler.Reconcile(t.Context(), key); !errors.Is(err, errAway) || len(a.requests()) != 0 {
			t.Errorf("%s of the cache: %v, pods %v are restarted", call, err, a.pods())
		}
	}
	for _, call := range []string{
		"get *v1alpha1.RestartRollout", "get *unstructured.Unstructured", "list *v1.PodList", "list *v1.PodDisruptionBudgetList", "list *v1beta1.ContainerRecreateRequestList",
	} {
		a := newAPIServer(t, deployment(), podOf("web-abc", 0), disruptionBudget(1), object())
		a.reconciler.live = failing(a.Client, call)
		if _, err := a.reconciler.Reconcile(t.Context(), key); !errors.Is(err, errAway) || len(a.requests()) != 0 {
			t.Errorf("%s: %v, pods %v are restarted", call, err, a.pods())
		}
	}
}

func TestAStatusThatCannotBeWrittenIsWrittenLater(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), object())
	working := a.reconciler.client
	a.reconciler.client = failing(a.Client, "write *v1alpha1.RestartRollout")
	if _, err := a.reconciler.Reconcile(t.Context(), key); !errors.Is(err, errAway) {
		t.Errorf("%v", err)
	}
	a.reconciler.client = working
	a.settle()
	if s := a.rollout().Status; s.MatchedPods != 1 || len(a.requests()) != 1 {
		t.Errorf("%+v, %d requests", s, len(a.requests()))
	}
}

func TestASelectorThatCannotBeReadEndsTheRollout(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, podOf("web-abc", 0), object(func(s *v1alpha1.RestartRolloutSpec) {
		s.TargetRef = nil
		s.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	}))
	a.settle()
	if s := a.rollout().Status; !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionFailed) || len(a.requests()) != 0 {
		t.Errorf("%+v", s)
	}
}

// All pods of the namespace are read if there are PodDisruptionBudgets.
func TestASelectorSelectsNoOtherPodsWhereThereAreDisruptionBudgets(t *testing.T) {
	t.Parallel()
	other := podOf("web-abc", 1)
	other.Labels = map[string]string{"app": "db"}
	a := newAPIServer(t, podOf("web-abc", 0), other, disruptionBudget(2), object(func(s *v1alpha1.RestartRolloutSpec) {
		s.TargetRef, s.Selector = nil, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		s.MaxUnavailable = new(intstr.FromInt32(2))
	}))
	if pods := a.started(); len(pods) > 1 || len(pods) == 1 && pods[0] != "web-abc-0" {
		t.Errorf("%v", pods)
	}
	if a.settle(); a.rollout().Status.MatchedPods != 1 {
		t.Errorf("%+v", a.rollout().Status)
	}
}

// The caches show it a moment later.
func TestAPodOnWhichAnotherControllerHasJustBegunCounts(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), podOf("web-abc", 1), object())
	a.reconciler.Disruptions.DecideBeside("SidecarSet log", func(map[types.UID]time.Time) []types.UID { return []types.UID{"web-abc-1"} })
	if pods := a.started(); slices.Contains(pods, "web-abc-0") {
		t.Errorf("%v", pods)
	}
}

// Whatever the webhook, a quota or the API itself says against a request, it says it again for the next.
func TestEveryKindOfRefusalIsARefusal(t *testing.T) {
	t.Parallel()
	resource := v1beta1.GroupVersion().WithResource("containerrecreaterequests").GroupResource()
	for name, tt := range map[string]struct {
		answer  error
		refused bool
	}{
		"bad request":       {apierrors.NewBadRequest("no"), true},
		"forbidden":         {apierrors.NewForbidden(resource, "x", errors.New("quota")), true},
		"invalid":           {apierrors.NewInvalid(v1beta1.GroupVersion().WithKind("ContainerRecreateRequest").GroupKind(), "x", nil), true},
		"it exists already": {apierrors.NewAlreadyExists(resource, "x"), false},
		"the pod is gone":   {apierrors.NewNotFound(resource, "x"), false},
	} {
		a := newAPIServer(t, deployment(), podOf("web-abc", 0), object())
		a.refuse = tt.answer
		if _, err := a.reconciler.Reconcile(t.Context(), key); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if failures := a.rollout().Status.Failures; (len(failures) == 1 && failures[0].Reason == rollout.ReasonRefused) != tt.refused {
			t.Errorf("%s: %+v", name, failures)
		}
	}
}

func TestPodsOfOtherWorkloadsCountAgainstAPodDisruptionBudget(t *testing.T) {
	t.Parallel()
	other := podOf("web-abc", 1)
	other.OwnerReferences, other.Labels = nil, map[string]string{"app": "web", "of": "another"}
	other.Status.Conditions[0].Status = corev1.ConditionFalse
	guarded := disruptionBudget(1)
	guarded.Status.CurrentHealthy, guarded.Status.DesiredHealthy, guarded.Status.ExpectedPods = 2, 1, 2 // from before the other pod was not ready
	if pods := newAPIServer(t, deployment(), podOf("web-abc", 0), other, guarded, object()).started(); len(pods) != 0 {
		t.Errorf("%v", pods)
	}
	other.Status.Conditions[0].Status = corev1.ConditionTrue
	if pods := newAPIServer(t, deployment(), podOf("web-abc", 0), other, guarded, object()).started(); !cmp.Equal(pods, []string{"web-abc-0"}) {
		t.Errorf("%v while all are healthy", pods)
	}
}

func TestAPodThatStaysInItsServicesIsAnEvent(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), object(func(s *v1alpha1.RestartRolloutSpec) { s.DrainSeconds = new(int32(5)) }))
	a.settle()
	said := ""
	for len(a.events.Events) > 0 {
		said += <-a.events.Events + "\n"
	}
	if strings.Count(said, "NotDrained") != 1 {
		t.Errorf("%s", said)
	}
}

// The scheduler does not guess what has been created.
func TestAScheduleReportsWhatItCannotReadOrWrite(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"get *v1alpha1.RestartSchedule", "list *v1alpha1.RestartRolloutList", "write *v1alpha1.RestartSchedule"} {
		a := newAPIServer(t, hourly())
		if _, err := (&scheduler{Config: a.reconciler.Config, client: failing(a.Client, call)}).Reconcile(t.Context(), nightly); !errors.Is(err, errAway) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func TestAScheduleThatIsBeingDeletedCreatesNothing(t *testing.T) {
	t.Parallel()
	leaving := hourly()
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: noon}, []string{"test/keep"}
	a := newAPIServer(t, leaving)
	if _, err := a.schedule(); err != nil || len(a.rolloutNames()) != 0 {
		t.Errorf("%v, %v", err, a.rolloutNames())
	}
}

// The status of a schedule does not change between two times, and each write wakes everybody who watches it.
func TestAScheduleIsWrittenOnlyWhenSomethingHasChanged(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, hourly())
	if _, err := a.schedule(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.schedule(); err != nil { // the rollout is active
		t.Fatal(err)
	}
	before := a.writes
	if _, err := a.schedule(); err != nil || a.writes != before {
		t.Errorf("%v, %d writes", err, a.writes-before)
	}
}

func TestRolloutsAreReconciledForPodsThatAreNewOrGone(t *testing.T) {
	t.Parallel()
	before, after := podOf("web-abc", 0), podOf("web-abc", 0)
	after.Generation = 2
	if !podChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("a change of the spec is dropped")
	}
	if !podChanged().Create(event.CreateEvent{Object: before}) || !podChanged().Delete(event.DeleteEvent{Object: before}) {
		t.Error("a pod that is new or gone is dropped")
	}
}
