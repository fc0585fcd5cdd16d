package control

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/rollout"
	"github.com/refit-project/refit/test/kit/recorder"
)

func TestPodsOfTheDeploymentAloneAreRestarted(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), podOf("web-abc", 1), podOf("web-canary-abc", 2), object())
	a.settle()
	if pods := a.pods(); !cmp.Equal(pods, []string{"web-abc-0"}) {
		t.Fatalf("%v", pods)
	}
	if s := a.rollout().Status; s.MatchedPods != 2 || s.RestartingPods != 1 {
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
	recorder.Want(t, a.events, "Normal RestartStarted 1 pod is being restarted; 0 of 2 have been", "Normal RestartStarted 1 pod is being restarted; 1 of 2 have been", "Normal Restarted ")
}

func TestThePodWhoseContainersHaveRunForTheLongestIsFirstIfThatIsAskedFor(t *testing.T) {
	t.Parallel()
	first, last, asks := podOf("web-abc", 0), podOf("web-abc", 1), object()
	for pod, started := range map[*corev1.Pod]time.Time{first: noon.Add(-time.Minute), last: noon.Add(-time.Hour)} {
		pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(started)}
	}
	asks.Annotations = map[string]string{v1alpha1.AnnotationOldestFirst: "true"}
	a := newAPIServer(t, deployment(), first, last, asks)
	a.settle()
	if pods := a.pods(); !cmp.Equal(pods, []string{last.Name}) {
		t.Errorf("%v", pods)
	}
}

func TestConflictIsAnotherLook(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), object())
	a.conflict = true
	if result, err := a.reconciler.Reconcile(t.Context(), key); !apierrors.IsConflict(err) {
		t.Errorf("%v, %v", result, err)
	}
}

func TestRequestsThatTheCacheDoesNotShowCountAgainstTheBudget(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), podOf("web-abc", 1), object())
	a.settle()
	behind := newAPIServer(t, deployment(), podOf("web-abc", 0), podOf("web-abc", 1), object())
	a.reconciler.client = behind
	decision, err := a.reconciler.decide(t.Context(), object())
	if err != nil || len(decision.Start) != 0 || decision.Status.RestartingPods != 1 {
		t.Errorf("%v, %v, %+v", err, decision.Start, decision.Status)
	}
}

func TestRequestsOfOthersWithTheLabelAreNotTakenForItsOwn(t *testing.T) {
	t.Parallel()
	pod := podOf("web-abc", 0)
	foreign := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: rollout.RequestName(object(), pod), Labels: map[string]string{v1alpha1.LabelRestartRollout: "rollout"},
	}}
	foreign.Spec.PodName = pod.Name
	crr.Complete(&foreign.Status, crr.Outcome{}, 1, noon)
	a := newAPIServer(t, deployment(), pod, foreign, object())
	decision, err := a.reconciler.decide(t.Context(), object())
	if err != nil || decision.Status.RestartedPods != 0 || len(decision.Start) != 1 {
		t.Errorf("%v, %+v", err, decision)
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
	failed := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionFailed)
	recorder.Want(t, a.events, "Warning "+failed.Reason+" ") // and no pod is said to be restarted
	if n := testutil.ToFloat64(a.reconciler.ended.WithLabelValues("failed", failed.Reason, "User")); n != 1 {
		t.Errorf("counted %v ends", n)
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
	if s := a.rollout().Status; s.FailedPods != 0 || s.CompletionTime != nil {
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

// Thousands of creations, one after another, held up the rollouts of others.
func TestARolloutOfManyPodsLetsOthersTakeTheirTurn(t *testing.T) {
	t.Parallel()
	objects := []client.Object{deployment(), object(func(s *v1alpha1.RestartRolloutSpec) { s.MaxUnavailable = new(intstr.FromString("100%")) })}
	for i := range 120 {
		objects = append(objects, podOf("web-abc", i))
	}
	a := newAPIServer(t, objects...)
	for _, want := range []int{50, 100, 120} {
		result, err := a.reconciler.Reconcile(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(a.requests()); got != want {
			t.Errorf("%d requests, want %d", got, want)
		}
		if want < 120 && (result.RequeueAfter == 0 || result.RequeueAfter > time.Second) {
			t.Errorf("looks again after %s", result.RequeueAfter)
		}
	}
}
