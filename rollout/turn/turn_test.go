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

// own is the pod of the process that asks: its own claim does not count.
func own(seconds int, holding bool) turn.Pod {
	p := claimed("own", seconds, holding)
	p.Available, p.UnderWay = true, false
	return p
}

// left is a pod on which a process that has died has begun an update, with which another one waits to go on.
func left(p turn.Pod, ready bool) turn.Pod {
	p.Ready, p.Available, p.UnderWay, p.Left = ready, false, true, true
	return p
}

// Each of them is under way, so that all would wait for one another until the records are old.
func TestUpdatesThatWereLeftGoOnInTurn(t *testing.T) {
	t.Parallel()
	unclaimed := left(claimed("x", 0, false), true)
	unclaimed.Claim = nil
	written, ended := left(claimed("x", 4, false), false), left(claimed("x", 4, false), true)
	written.Left, ended.Left = false, false
	for name, tt := range map[string]struct {
		own, other turn.Pod
		want       turn.Step
	}{
		"it has waited for longer":            {left(own(5, false), true), left(claimed("x", 4, false), true), turn.Hold},
		"the other has":                       {left(own(5, false), true), left(claimed("x", 6, false), true), turn.Wait},
		"it does not serve":                   {left(own(5, false), false), left(claimed("x", 6, false), true), turn.Hold},
		"the other does not serve":            {left(own(5, false), true), left(claimed("x", 4, false), false), turn.Wait},
		"it is its turn":                      {left(own(5, true), true), left(claimed("x", 4, false), true), turn.Go},
		"it is the turn of the other":         {left(own(5, false), true), left(claimed("x", 4, true), true), turn.Wait},
		"both hold it":                        {left(own(5, true), true), left(claimed("x", 4, true), true), turn.Retreat},
		"nobody goes on with the other":       {left(own(5, false), true), unclaimed, turn.Wait},
		"kubelet is about to start the other": {left(own(5, false), true), written, turn.Wait},
		"a restart of the other ends":         {left(own(5, false), true), ended, turn.Wait},
		"neither serves":                      {left(own(5, false), false), left(claimed("x", 6, false), false), turn.Wait},
		"nothing was begun on its own":        {own(5, false), left(claimed("x", 4, false), true), turn.Wait},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := turn.Next(turn.Observation{Pods: []turn.Pod{tt.own, tt.other}, Limit: 1}); got.Step != tt.want {
				t.Errorf("%+v, want %s", got, tt.want)
			}
		})
	}
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

// Pods that the workload lacks are unavailable, and of those that have waited for longer each takes a place.
func TestPlacesThatAreTaken(t *testing.T) {
	t.Parallel()
	down := turn.Pod{Pod: budget.Pod{Name: "x"}}
	for name, tt := range map[string]struct {
		others         []turn.Pod
		limit, missing int
		want           turn.Step
	}{
		"one is missing":               {nil, 1, 1, turn.Wait},
		"one is missing, two may be":   {nil, 2, 1, turn.Hold},
		"one does not serve":           {[]turn.Pod{down}, 1, 0, turn.Wait},
		"a surplus one does not serve": {[]turn.Pod{down}, 1, -1, turn.Hold},
		"two are before, two may be":   {[]turn.Pod{claimed("a", 7, false), claimed("b", 6, false)}, 2, 0, turn.Wait},
		"two are before, three may be": {[]turn.Pod{claimed("a", 7, false), claimed("b", 6, false)}, 3, 0, turn.Hold},
	} {
		got := turn.Next(turn.Observation{Pods: append([]turn.Pod{own(5, false)}, tt.others...), Limit: tt.limit, Missing: tt.missing})
		if got.Step != tt.want {
			t.Errorf("%s: %+v, want %s", name, got, tt.want)
		}
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
