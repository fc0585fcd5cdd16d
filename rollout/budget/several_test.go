package budget_test

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/rollout/budget"
)

// The Eviction API refuses a pod that two budgets select. A restart is no eviction: it needs a disruption of both.
func TestAPodThatTwoDisruptionBudgetsSelectNeedsBoth(t *testing.T) {
	t.Parallel()
	named := func(name string, allowed int32) *policyv1.PodDisruptionBudget {
		object := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}
		object.Status = policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 3, DesiredHealthy: 3 - allowed, DisruptionsAllowed: allowed, ExpectedPods: 3}
		return object
	}
	for name, tt := range map[string]struct {
		first, second int32
		taken         int
		by            string
	}{
		"one allows nothing":       {2, 0, 0, "second"},
		"the first allows nothing": {0, 2, 0, "first"},
		"each has one less":        {2, 1, 1, "second"},
	} {
		pods := []budget.Pod{serving, serving, serving}
		b := budget.New(3, pods, 0, 0, budget.NewDisruptions([]*policyv1.PodDisruptionBudget{named("first", tt.first), named("second", tt.second)}, pods))
		for i := range tt.taken {
			if hold, by := b.Take(&pods[i]); hold != "" {
				t.Errorf("%s: pod %d is held: %s by %s", name, i, hold, by)
			}
		}
		if hold, by := b.Take(&pods[tt.taken]); hold != budget.HoldDisruption || by != tt.by {
			t.Errorf("%s: the next pod: %q by %q, want %s", name, hold, by, tt.by)
		}
	}
}
