package beside_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/sidecarset/control/beside"
)

func readyPod(name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return pod
}

// The cache shows neither that the other pod is being taken out, nor that its PodDisruptionBudget allows one disruption less.
func TestWhatHasJustBeenBegunUsesADisruption(t *testing.T) {
	t.Parallel()
	cached := threePodsAndABudget(t)
	for busy, want := range map[string]string{"web-0": "one", "": ""} {
		budgets := beside.NewBudgets(cached, nil, func(pod *corev1.Pod) bool { return pod.Name == busy }, time.Now())
		if by := budgets.In(t.Context(), "shop").Take(&budget.Pod{Name: "web-1", Labels: map[string]string{"app": "web"}, Ready: true}); by != want || budgets.Err != nil {
			t.Errorf("with %q begun the pod is held by %q, want %q (%v)", busy, by, want, budgets.Err)
		}
	}
}

// A budget that was computed from the other pods would allow one disruption too many.
func TestAPodThatCannotBeJudgedUsesADisruption(t *testing.T) {
	t.Parallel()
	budgets := beside.NewBudgets(threePodsAndABudget(t), nil, func(pod *corev1.Pod) bool {
		if pod.Name == "web-0" {
			panic("planted")
		}
		return false
	}, time.Now())
	if by := budgets.In(t.Context(), "shop").Take(&budget.Pod{Name: "web-1", Labels: map[string]string{"app": "web"}, Ready: true}); by != "one" || budgets.Err != nil {
		t.Errorf("the pod is held by %q (%v)", by, budgets.Err)
	}
}

func threePodsAndABudget(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), policyv1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	one := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one"}}
	one.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	one.Status = policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, CurrentHealthy: 3, DesiredHealthy: 2, ExpectedPods: 3}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(one, readyPod("web-0"), readyPod("web-1"), readyPod("web-2")).Build()
}
