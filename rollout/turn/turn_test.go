package turn_test

import (
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/rollout/turn"
)

var now = time.Unix(1e9, 0)

// claimed is a pod that serves, on which somebody has had a claim for so many seconds.
func claimed(name string, seconds int, holding bool) turn.Pod {
	c := budget.NewClaim(name, now.Add(-time.Duration(seconds)*time.Second))
	c.Holding = holding
	return turn.Pod{Pod: budget.Pod{Name: name, Ready: true, Available: !holding, UnderWay: holding}, Claim: &c}
}

// own is that of the process that asks: its own claim does not count.
func own(seconds int, holding bool) turn.Pod {
	p := claimed("own", seconds, holding)
	p.Available, p.UnderWay = true, false
	return p
}

func TestProcessesTakeOutPodsInTurn(t *testing.T) {
	t.Parallel()
	serving := turn.Pod{Pod: budget.Pod{Name: "x", Ready: true, Available: true}}
	down := turn.Pod{Pod: budget.Pod{Name: "x", UnderWay: true}}
	lost := own(5, false)
	lost.Claim = nil
	stuck := own(5, false)
	stuck.Ready, stuck.Available, stuck.Stuck = false, false, true
	for name, tt := range map[string]struct {
		own    turn.Pod
		others []turn.Pod
		limit  int
		want   turn.Step
	}{
		"alone":                                 {own(5, false), []turn.Pod{serving}, 1, turn.Hold},
		"alone, and it is its turn":             {own(5, true), []turn.Pod{serving}, 1, turn.Go},
		"another pod is out of service":         {own(5, false), []turn.Pod{down}, 1, turn.Wait},
		"another pod has gone out meanwhile":    {own(5, true), []turn.Pod{down}, 1, turn.Retreat},
		"two may be out of service":             {own(5, false), []turn.Pod{down}, 2, turn.Hold},
		"somebody has waited for longer":        {own(5, false), []turn.Pod{claimed("x", 6, false)}, 1, turn.Wait},
		"somebody has waited for less long":     {own(5, false), []turn.Pod{claimed("x", 4, false)}, 1, turn.Hold},
		"at the same time, by name":             {own(5, false), []turn.Pod{claimed("a", 5, false)}, 1, turn.Wait},
		"at the same time, the other by name":   {own(5, false), []turn.Pod{claimed("x", 5, false)}, 1, turn.Hold},
		"one before, and two may go":            {own(5, false), []turn.Pod{claimed("x", 6, false)}, 2, turn.Hold},
		"somebody holds the turn":               {own(5, false), []turn.Pod{claimed("x", 4, true)}, 1, turn.Wait},
		"both hold it":                          {own(5, true), []turn.Pod{claimed("x", 4, true)}, 1, turn.Retreat},
		"it is its turn, and others wait":       {own(5, true), []turn.Pod{claimed("x", 9, false)}, 1, turn.Go},
		"its claim has ended":                   {lost, []turn.Pod{serving}, 1, turn.Retreat},
		"its pod cannot become ready by itself": {stuck, []turn.Pod{down}, 1, turn.Hold},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := turn.Next(turn.Observation{Pods: append([]turn.Pod{tt.own}, tt.others...), Limit: tt.limit})
			if got.Step != tt.want {
				t.Errorf("%+v, want %s", got, tt.want)
			}
			if waits := got.Step == turn.Wait || got.Step == turn.Retreat && tt.own.Claim != nil; waits != (got.Hold == budget.HoldUnavailable) {
				t.Errorf("%+v does not say why", got)
			}
		})
	}
}

func TestAProcessWaitsForADisruptionBudgetAndNamesIt(t *testing.T) {
	t.Parallel()
	strict := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "strict"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}
	pods := []turn.Pod{own(5, false)}
	got := turn.Next(turn.Observation{Pods: pods, Limit: 1, Disruptions: func() *budget.Disruptions {
		return budget.NewDisruptions([]*policyv1.PodDisruptionBudget{strict}, []budget.Pod{pods[0].Pod})
	}})
	if want := (turn.Decision{Step: turn.Wait, Hold: budget.HoldDisruption, By: "strict"}); got != want {
		t.Errorf("%+v", got)
	}
}
