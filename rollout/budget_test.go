package rollout_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDisruptionBudgetDoesNotSeeARestartTwice(t *testing.T) {
	t.Parallel()
	f := newFixture(5, maxUnavailable("3"))
	f.observed.Budgets = []*policyv1.PodDisruptionBudget{budget(1)}
	f.look()
	if started := f.look(); started != nil { // the pod is still ready, and the budget's status as before
		t.Fatalf("%v beyond the budget", started)
	}
	setReady(f.pod("web-4"), false, f.now)
	f.observed.Budgets[0].Status.DisruptionsAllowed = 0
	if started := f.look(); started != nil {
		t.Fatalf("%v beyond the budget", started)
	}
	f.restart("web-4")
	f.observed.Budgets[0].Status.DisruptionsAllowed = 1
	if started := f.look(); !cmp.Equal(started, []string{"web-3"}) {
		t.Fatalf("%v", started)
	}
}

// The rollout learns that a pod is not ready from the same change as the controller of budgets, and may be faster.
func TestDisruptionBudgetThatStillCountsAPodAsHealthyAllowsNoOther(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		healthy, expected int32 // as the status of the budget has it
		started           []string
	}{
		"not seen yet": {healthy: 5, expected: 5},
		"seen, and another disruption is allowed":    {healthy: 4, expected: 5, started: []string{"web-3"}},
		"seen while a rolling update surges":         {healthy: 4, expected: 4, started: []string{"web-3"}},
		"pods of other workloads":                    {healthy: 9, expected: 10, started: []string{"web-3"}},
		"not seen yet among pods of other workloads": {healthy: 10, expected: 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(5, maxUnavailable("2"))
			f.observed.Budgets = []*policyv1.PodDisruptionBudget{budget(1)}
			f.look()
			setReady(f.pod("web-4"), false, f.now)
			f.observed.Budgets[0].Status.CurrentHealthy, f.observed.Budgets[0].Status.ExpectedPods = tt.healthy, tt.expected
			if started := f.look(); !cmp.Equal(started, tt.started) {
				t.Errorf("%v, want %v", started, tt.started)
			}
		})
	}
}

// Its controller hears of the deletion when the rollout does, and may be slower.
func TestDisruptionBudgetThatStillCountsAPodThatIsEndingAllowsNoOther(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		healthy int32 // as the status of the budget has it
		started []string
	}{
		"not seen yet": {healthy: 3},
		"seen, and another disruption is allowed": {healthy: 2, started: []string{"web-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(3, maxUnavailable("2"))
			f.pod("web-2").DeletionTimestamp = new(metav1.NewTime(start))
			f.observed.Budgets = []*policyv1.PodDisruptionBudget{budget(1)}
			f.observed.Budgets[0].Status.CurrentHealthy, f.observed.Budgets[0].Status.ExpectedPods = tt.healthy, 3
			if started := f.look(); !cmp.Equal(started, tt.started) {
				t.Errorf("%v, want %v", started, tt.started)
			}
		})
	}
}
