package rollouts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

var (
	noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	key  = ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "web"}}
)

// apiServer is a fake one with the controller.
type apiServer struct {
	client.Client
	t          *testing.T
	reconciler *reconciler
	events     *events.FakeRecorder
	now        time.Time
	writes     int
	refuse     error // answer to a create
	refused    int
}

func newAPIServer(t *testing.T, objects ...client.Object) *apiServer {
	t.Helper()
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), appsv1.AddToScheme(kinds), policyv1.AddToScheme(kinds), v1beta1.AddToScheme(kinds), v1alpha1.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	a := &apiServer{t: t, now: noon, events: events.NewFakeRecorder(100)}
	a.Client = fake.NewClientBuilder().WithScheme(kinds).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.RestartRollout{}, &v1alpha1.RestartSchedule{}, &v1beta1.ContainerRecreateRequest{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if a.refuse != nil {
					a.refused++
					return a.refuse
				}
				a.writes++
				return c.Create(ctx, o, opts...)
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				a.writes++
				return c.SubResource(sub).Update(ctx, o, opts...)
			},
		}).Build()
	a.reconciler = &reconciler{
		client: a, live: a, ended: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "x"}, []string{"outcome", "reason", "trigger"}),
		Config: Config{Clock: func() time.Time { return a.now }, Recorder: a.events, Logger: slog.New(slog.DiscardHandler)},
	}
	return a
}

func (a *apiServer) settle() {
	a.t.Helper()
	for range 20 {
		before := a.writes
		if _, err := a.reconciler.Reconcile(a.t.Context(), key); err != nil {
			a.t.Fatal(err)
		}
		if a.writes == before {
			return
		}
	}
	a.t.Fatal("does not come to rest")
}

func (a *apiServer) rollout() *v1alpha1.RestartRollout {
	a.t.Helper()
	var object v1alpha1.RestartRollout
	if err := a.Get(a.t.Context(), key.NamespacedName, &object); err != nil {
		a.t.Fatal(err)
	}
	return &object
}

func (a *apiServer) requests() []v1beta1.ContainerRecreateRequest {
	a.t.Helper()
	var list v1beta1.ContainerRecreateRequestList
	if err := a.List(a.t.Context(), &list); err != nil {
		a.t.Fatal(err)
	}
	return list.Items
}

func (a *apiServer) pods() []string {
	var names []string
	for _, request := range a.requests() {
		names = append(names, request.Spec.PodName)
	}
	return names
}

// complete ends all requests, and shows in the pods that their containers are new.
func (a *apiServer) complete(outcome crr.Outcome) {
	a.t.Helper()
	for _, request := range a.requests() {
		crr.Complete(&request.Status, outcome, 1, a.now)
		if err := a.Status().Update(a.t.Context(), &request); err != nil {
			a.t.Fatal(err)
		}
	}
}

func deployment() *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "deployment"}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	return d
}

func podOf(set string, i int) *corev1.Pod {
	name := fmt.Sprintf("%s-%d", set, i)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
		Labels:          map[string]string{"app": "web", "pod-template-hash": set[strings.LastIndexByte(set, '-')+1:]},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: set, UID: types.UID(set), Controller: new(true)}},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "app"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://" + name}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return pod
}

func object(change ...func(*v1alpha1.RestartRolloutSpec)) *v1alpha1.RestartRollout {
	o := &v1alpha1.RestartRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "rollout", CreationTimestamp: metav1.NewTime(noon)}}
	o.Spec.TargetRef = &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	o.Spec.Containers = []string{"app"}
	for _, c := range change {
		c(&o.Spec)
	}
	return o
}

func TestPodsOfTheDeploymentAloneAreRestarted(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), podOf("web-abc", 1), podOf("web-canary-abc", 2), object())
	a.settle()
	if pods := a.pods(); !cmp.Equal(pods, []string{"web-abc-0"}) {
		t.Fatalf("%v", pods)
	}
	if s := a.rollout().Status; s.Pods != 2 || s.Restarting != 1 {
		t.Errorf("%+v", s)
	}
	a.complete(crr.Outcome{})
	a.settle()
	a.complete(crr.Outcome{})
	a.settle()
	if !meta.IsStatusConditionTrue(a.rollout().Status.Conditions, v1alpha1.ConditionSucceeded) || len(a.pods()) != 2 {
		t.Errorf("%v, %+v", a.pods(), a.rollout().Status)
	}
	if n := testutil.ToFloat64(a.reconciler.ended.WithLabelValues("succeeded", "Restarted", "User")); n != 1 {
		t.Errorf("counted %v ends", n)
	}
}

func TestRequestsThatTheCacheDoesNotShowCountAgainstTheBudget(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), podOf("web-abc", 1), object())
	a.settle()
	behind := newAPIServer(t, deployment(), podOf("web-abc", 0), podOf("web-abc", 1), object())
	a.reconciler.client = behind
	decision, err := a.reconciler.decide(t.Context(), object())
	if err != nil || len(decision.Start) != 0 || decision.Status.Restarting != 1 {
		t.Errorf("%v, %v, %+v", err, decision.Start, decision.Status)
	}
}

func TestRequestsOfOthersWithTheLabelDoNotCount(t *testing.T) {
	t.Parallel()
	foreign := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "forged", Labels: map[string]string{v1alpha1.LabelRestartRollout: "rollout"}}}
	a := newAPIServer(t, foreign, object())
	if own, err := requests(t.Context(), a, object()); err != nil || len(own) != 0 {
		t.Errorf("%v, %v", own, err)
	}
}

func TestRefusedRequestEndsTheRolloutWithTheRefusal(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), podOf("web-abc", 1), object())
	a.refuse = apierrors.NewBadRequest("spec.containers[0].name: no such container")
	a.settle()
	s := a.rollout().Status
	if len(s.Failures) != 1 || !strings.Contains(s.Failures[0].Message, "no such container") || !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionFailed) {
		t.Errorf("%+v", s)
	}
}

func TestManyRefusalsEndTheRolloutAndAreBounded(t *testing.T) {
	t.Parallel()
	objects := []client.Object{deployment(), object(func(s *v1alpha1.RestartRolloutSpec) {
		s.FailurePolicy, s.MaxUnavailable = v1alpha1.RolloutFailureContinue, new(intstr.FromString("100%"))
	})}
	for i := range 30 {
		objects = append(objects, podOf("web-abc", i))
	}
	a := newAPIServer(t, objects...)
	a.refuse = apierrors.NewBadRequest(strings.Repeat("no ", 20000))
	a.settle()
	s := a.rollout().Status
	if a.refused != 10 || len(s.Failures) != 10 || !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionFailed) {
		t.Errorf("%d refused, %d recorded, %+v", a.refused, len(s.Failures), s.Conditions)
	}
	for _, failure := range s.Failures {
		if len(failure.Message) > 1024 {
			t.Errorf("a message of %d bytes", len(failure.Message))
		}
	}
}

func TestFailureOfTheAPIServerIsNoRefusal(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), object())
	a.refuse = apierrors.NewInternalError(errors.New("webhook is away"))
	if _, err := a.reconciler.Reconcile(t.Context(), key); err == nil {
		t.Error("no error")
	}
	if s := a.rollout().Status; s.Failed != 0 || s.CompletionTime != nil {
		t.Errorf("%+v", s)
	}
}

func TestMissingWorkloadFails(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, object())
	a.settle()
	if c := meta.FindStatusCondition(a.rollout().Status.Conditions, v1alpha1.ConditionFailed); c == nil || c.Reason != v1alpha1.ReasonTargetNotFound {
		t.Errorf("%+v", a.rollout().Status)
	}
}

func TestSelectorWithoutTermsMatchesNoPod(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, podOf("web-abc", 0), object(func(s *v1alpha1.RestartRolloutSpec) { s.TargetRef, s.Selector = nil, &metav1.LabelSelector{} }))
	a.settle()
	if len(a.pods()) != 0 || a.rollout().Status.CompletionTime == nil {
		t.Errorf("%v", a.pods())
	}
}

func TestSelectorSelectsPodsOfSeveralWorkloads(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, podOf("web-abc", 0), podOf("web-canary-abc", 1), object(func(s *v1alpha1.RestartRolloutSpec) {
		s.TargetRef, s.Selector = nil, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	}))
	a.settle()
	a.complete(crr.Outcome{})
	a.settle()
	if len(a.pods()) != 2 {
		t.Errorf("%v", a.pods())
	}
}

func TestExpiredRolloutIsDeleted(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, object(func(s *v1alpha1.RestartRolloutSpec) { s.TTLSecondsAfterFinished = new(int32(5)) }))
	a.settle()
	result, err := a.reconciler.Reconcile(t.Context(), key)
	if err != nil || result.RequeueAfter != 5*time.Second {
		t.Fatalf("%v, %v", result, err)
	}
	a.now = a.now.Add(5 * time.Second)
	a.settle()
	if err := a.Get(t.Context(), key.NamespacedName, &v1alpha1.RestartRollout{}); !apierrors.IsNotFound(err) {
		t.Errorf("%v", err)
	}
}
