package rollout_test

import (
	"maps"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// Whole workloads were out of service: a pod that is not ready for a moment is ready again before its container has been stopped.
func TestPodsThatAreNotReadyForAMomentAreNotUpdatedAllAtOnce(t *testing.T) {
	t.Parallel()
	old := func(n int, c ...change) kind { return kind{n, c} }
	for name, tt := range map[string]struct {
		strategy rollout.Strategy
		kinds    []kind
		want     int
		held     rollout.Hold
	}{
		"a blip of all":                 {rollout.Strategy{}, []kind{old(3, notReady)}, 1, rollout.HoldUnavailable},
		"a blip while one is updated":   {rollout.Strategy{}, []kind{old(2, notReady), old(1, updated, inFlight)}, 0, rollout.HoldUnavailable},
		"a blip before one is updated":  {rollout.Strategy{}, []kind{old(1, notReady), old(2)}, 1, rollout.HoldUnavailable},
		"as many as may be unavailable": {rollout.Strategy{MaxUnavailable: number(2)}, []kind{old(3, notReady)}, 2, rollout.HoldUnavailable},
		"of one workload all but one": {
			rollout.Strategy{MaxUnavailable: number(9)}, []kind{old(3, notReady, of("a")), old(2, notReady, of("b"))}, 3, rollout.HoldWorkload,
		},
		"evictions": {rollout.Strategy{Recreate: true}, []kind{old(3, notUpgradable, notReady)}, 1, rollout.HoldUnavailable},
		"a blip of one counts when its update begins": {
			rollout.Strategy{MaxUnavailable: number(2)}, []kind{old(1, updated, notReady), old(1, notReady), old(2)}, 1, rollout.HoldUnavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := fleetOf(&tt.strategy, tt.kinds...).Select(&tt.strategy, now, nil)
			if len(got.Pods) != tt.want || got.Held != tt.held || got.Disruption != "" {
				t.Errorf("%d pods, held by %q%s; want %d, %q", len(got.Pods), got.Held, got.Disruption, tt.want, tt.held)
			}
		})
	}
}

func underWay(p *rollout.Pod) { p.UnderWay = true }
func stops(p *rollout.Pod)    { p.Stops = true }

// Two SidecarSets on a workload of two pods took both out, a RestartRollout and a SidecarSet two of three.
func TestWhatOthersHaveBegunCountsAsUnavailable(t *testing.T) {
	t.Parallel()
	old := func(n int, c ...change) kind { return kind{n, c} }
	for name, tt := range map[string]struct {
		strategy rollout.Strategy
		kinds    []kind
		want     int
		held     rollout.Hold
	}{
		"another SidecarSet updates the other pod of two": {
			rollout.Strategy{MaxUnavailable: number(9)}, []kind{old(1, of("a"), denied, underWay), old(1, of("a"))}, 0, rollout.HoldWorkload,
		},
		"a pod that is still ready is restarted": {rollout.Strategy{}, []kind{old(1, updated, underWay), old(2)}, 0, rollout.HoldUnavailable},
		"a pod that is restarted may be updated": {rollout.Strategy{}, []kind{old(1, underWay, of("a")), old(1, of("a"))}, 1, rollout.HoldUnavailable},
		"all pods are restarted by somebody":     {rollout.Strategy{}, []kind{old(3, underWay, of("a"))}, 0, rollout.HoldUnavailable},
		"a pod that cannot become ready by itself is restarted": {
			rollout.Strategy{MaxUnavailable: number(9)}, []kind{old(1, of("a"), updated, notReady, original, stuck, underWay), old(2, of("a"))}, 1, rollout.HoldWorkload,
		},
		"the reason of the first that is held is shown": {
			rollout.Strategy{MaxUnavailable: number(9), WorkloadMaxUnavailable: number(1), Partition: number(2)}, []kind{old(2, of("a")), old(2, of("b"))}, 2, rollout.HoldWorkload,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := fleetOf(&tt.strategy, tt.kinds...).Select(&tt.strategy, now, nil)
			if len(got.Pods) != tt.want || got.Held != tt.held || got.Disruption != "" {
				t.Errorf("%d pods, held by %q%s; want %d, %q", len(got.Pods), got.Held, got.Disruption, tt.want, tt.held)
			}
		})
	}
}

// The caches show it a moment later.
func TestWhatAnotherControllerBeginsAtTheSameMomentCounts(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{}
	f := rollout.NewFleet(nil)
	for i := range 3 {
		f.Set(pod(i, func(p *rollout.Pod) { p.UID = types.UID(p.Key.Name) }))
	}
	f.Select(s, now, nil) // all are available
	shown := now.Add(10 * time.Second)
	got := f.Select(s, now, &rollout.Beside{Begun: map[types.UID]time.Time{"p0002": shown, "of another fleet": now.Add(time.Second)}})
	if len(got.Pods) != 1 || got.Pods[0] != keyOf(2) || !got.Again.Equal(shown) {
		t.Errorf("%+v, want the pod that is out anyway", got)
	}
	f.Set(pod(2, updated, func(p *rollout.Pod) { p.UID = "p0002" }))
	if got := f.Select(s, now, &rollout.Beside{Begun: map[types.UID]time.Time{"p0002": shown}}); len(got.Pods) != 0 || !got.Again.Equal(shown) {
		t.Errorf("%+v, while another pod is out", got)
	}
	two := &rollout.Strategy{MaxUnavailable: number(2)}
	f.Set(pod(2, updated, notReady, func(p *rollout.Pod) { p.UID = "p0002" }))
	if got := f.Select(two, now, &rollout.Beside{Begun: map[types.UID]time.Time{"p0002": shown}}); len(got.Pods) != 1 {
		t.Errorf("%+v, when it is not ready: it counts once", got)
	}
	f.Set(pod(2, updated, func(p *rollout.Pod) { p.UID = "p0002" }))
	if got := f.Select(s, now, nil); len(got.Pods) != 1 {
		t.Errorf("%+v afterwards", got)
	}
}

// The workload of the pod that was evicted since it had no sidecars lacks it until there is another.
func TestAnEvictionForAnotherReasonCountsAsUnavailable(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{MaxUnavailable: number(9)}
	f := fleetOf(s, kind{2, []change{of("a")}}, kind{1, []change{of("b")}})
	if got := f.Select(s, now, &rollout.Beside{Gone: "a"}); len(got.Pods) != 2 || got.Held != rollout.HoldWorkload {
		t.Errorf("%+v, want one of each workload", got)
	}
	if got := f.Select(&rollout.Strategy{}, now, &rollout.Beside{Gone: "a"}); len(got.Pods) != 0 || got.Held != rollout.HoldUnavailable {
		t.Errorf("%+v, want none beside the one that is gone", got)
	}
}

// A pod that is deleted, as for a rollout of the template, is missed in its workload until it is gone. Other workloads go on.
func TestAPodThatIsBeingDeletedCountsInItsWorkload(t *testing.T) {
	t.Parallel()
	ends := map[types.NamespacedName]rollout.Ending{keyOf(8): {UID: "old", Workload: "a", Until: now.Add(time.Minute)}, keyOf(9): {UID: "completed", Workload: "b"}}
	s := &rollout.Strategy{MaxUnavailable: number(9), WorkloadMaxUnavailable: number(1)}
	f := fleetOf(s, kind{2, []change{of("a")}}, kind{2, []change{of("b")}})
	got := f.Select(s, now, &rollout.Beside{Ending: maps.All(ends)})
	if len(got.Pods) != 1 || got.Pods[0] != keyOf(2) && got.Pods[0] != keyOf(3) || got.Held != rollout.HoldWorkload || !got.Again.Equal(now.Add(time.Minute)) {
		t.Errorf("%+v, want one of the other workload", got)
	}
	if got := f.Select(s, now.Add(time.Minute), &rollout.Beside{Ending: maps.All(ends)}); len(got.Pods) != 2 {
		t.Errorf("%+v, want one of each: its end is held up", got)
	}
	if got := f.Select(&rollout.Strategy{}, now, &rollout.Beside{Ending: maps.All(ends)}); len(got.Pods) != 1 {
		t.Errorf("%+v, want one: it does not count for all", got)
	}
	f.EvictedByOther(keyOf(8), &rollout.Leaving{UID: "old", Workload: "a", At: now, Gone: now})
	s.WorkloadMaxUnavailable = number(2)
	if got := f.Select(s, now, &rollout.Beside{Ending: maps.All(ends)}); len(got.Pods) != 3 {
		t.Errorf("%+v, want 3: an eviction that is known counts once", got)
	}
}

func TestPodDisruptionBudgetsAreAskedBeforeAContainerIsStopped(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{MaxUnavailable: number(9)}
	closed := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	closed.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	beside := &rollout.Beside{Disruptions: func(namespace string) *budget.Disruptions {
		if namespace != "shop" {
			t.Errorf("asked for %s", namespace)
		}
		return budget.NewDisruptions([]*policyv1.PodDisruptionBudget{closed}, nil)
	}}
	db := labelled("app", "db")
	for name, tt := range map[string]struct {
		changes []change
		want    int
	}{
		"ready":                    {[]change{db, stops}, 0},
		"not ready":                {[]change{db, stops, notReady}, 0},
		"stuck":                    {[]change{db, stops, notReady, stuck}, 1},
		"of no budget":             {[]change{labelled("app", "web"), stops}, 1},
		"no container is stopped":  {[]change{db}, 1},
		"restarted by others":      {[]change{db, stops, underWay}, 1},
		"begun with an older spec": {[]change{db, stops, inFlight}, 1},
	} {
		got := fleetOf(s, kind{1, tt.changes}).Select(s, now, beside)
		if len(got.Pods) != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
		if tt.want == 0 && (got.Held != rollout.HoldDisruption || got.Disruption != "shop/db") {
			t.Errorf("%s: held by %q, budget %q", name, got.Held, got.Disruption)
		}
	}
}

// What one pod has taken of a budget the next cannot take.
func TestAPodDisruptionBudgetAllowsNoMoreThanItSays(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{MaxUnavailable: number(9)}
	disruptionBudget := func(name string, allowed int32) *policyv1.PodDisruptionBudget {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
		b.Status = policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, CurrentHealthy: 3, DesiredHealthy: 3 - allowed, ExpectedPods: 3}
		return b
	}
	beside := &rollout.Beside{Disruptions: func(string) *budget.Disruptions {
		return budget.NewDisruptions([]*policyv1.PodDisruptionBudget{disruptionBudget("db", 1), disruptionBudget("web", 0)}, nil)
	}}
	db, web := labelled("app", "db"), labelled("app", "web")
	got := fleetOf(s, kind{3, []change{db, stops}}, kind{1, []change{web, stops}}).Select(s, now, beside)
	if len(got.Pods) != 1 || got.Held != rollout.HoldDisruption || got.Disruption != "shop/db" {
		t.Errorf("%+v, want one, and the budget that holds the next in the order", got)
	}
	got = fleetOf(s, kind{1, []change{web, stops}}, kind{3, []change{db, stops}}).Select(s, now, beside)
	if len(got.Pods) != 1 || got.Disruption != "shop/web" {
		t.Errorf("%+v, want one, and the budget that holds the first in the order", got)
	}
	one := &rollout.Strategy{}
	got = fleetOf(one, kind{2, []change{db}}, kind{1, []change{web, stops}}).Select(one, now, beside)
	if len(got.Pods) != 1 || got.Held != rollout.HoldUnavailable || got.Disruption != "" {
		t.Errorf("%+v, want one, and no budget: it was not asked", got)
	}
}
