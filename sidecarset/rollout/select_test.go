package rollout_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/sidecarset/rollout"
)

var now = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

func number(n int) *intstr.IntOrString     { return new(intstr.FromInt32(int32(n))) }
func percent(p string) *intstr.IntOrString { return new(intstr.FromString(p)) }

func keyOf(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("p%04d", i)}
}

// pod is outdated and has been ready for an hour; its age grows with i.
func pod(i int, change ...func(*rollout.Pod)) rollout.Pod {
	p := rollout.Pod{
		Key: keyOf(i), State: rollout.Outdated, Ready: true, ReadySince: now.Add(-time.Hour), Scheduled: true, Phase: corev1.PodRunning,
		Created: now.Add(-time.Hour - time.Duration(i)*time.Second),
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

func updated(p *rollout.Pod) { p.State = rollout.Updated }
func phase(is corev1.PodPhase) func(*rollout.Pod) {
	return func(p *rollout.Pod) { p.Phase = is }
}
func notReady(p *rollout.Pod)      { p.Ready, p.ReadySince = false, time.Time{} }
func notUpgradable(p *rollout.Pod) { p.State = rollout.NotUpgradable }
func stuck(p *rollout.Pod)         { p.Stuck = true }
func broken(p *rollout.Pod)        { p.BrokenBefore = true }
func original(p *rollout.Pod)      { p.Original = true }
func denied(p *rollout.Pod)        { p.RetryAt = now.Add(time.Minute) }
func inFlight(p *rollout.Pod)      { p.InFlight = true }
func failed(p *rollout.Pod)        { p.InFlight, p.Failed = true, true }
func of(workload string) func(*rollout.Pod) {
	return func(p *rollout.Pod) { p.Workload = workload }
}

func labelled(key, value string) func(*rollout.Pod) {
	return func(p *rollout.Pod) { p.Labels = map[string]string{key: value} }
}

type change = func(*rollout.Pod)

// fleet has so many pods of each kind.
type kind struct {
	n      int
	change []change
}

func fleetOf(s *rollout.Strategy, kinds ...kind) *rollout.Fleet {
	f := rollout.NewFleet(s.Scatter)
	i := 0
	for _, k := range kinds {
		for range k.n {
			f.Set(pod(i, k.change...))
			i++
		}
	}
	return f
}

func TestHowManyPodsAreUpdated(t *testing.T) {
	t.Parallel()
	type row struct {
		name     string
		strategy rollout.Strategy
		kinds    []kind
		want     int
		held     rollout.Hold
	}
	old := func(n int, c ...change) kind { return kind{n, c} }
	for _, r := range []row{
		{"one at a time by default", rollout.Strategy{}, []kind{old(5)}, 1, rollout.HoldUnavailable},
		{"a number", rollout.Strategy{MaxUnavailable: number(3)}, []kind{old(5)}, 3, rollout.HoldUnavailable},
		{"more than there are", rollout.Strategy{MaxUnavailable: number(9)}, []kind{old(5)}, 5, ""},
		{"none", rollout.Strategy{MaxUnavailable: number(0)}, []kind{old(5)}, 0, rollout.HoldUnavailable},
		{"a percentage is rounded up", rollout.Strategy{MaxUnavailable: percent("1%")}, []kind{old(5)}, 1, rollout.HoldUnavailable},
		{"updated and not ready count", rollout.Strategy{MaxUnavailable: number(3)}, []kind{old(5), old(2, updated, notReady)}, 1, rollout.HoldUnavailable},
		{"updated and not ready since before do not", rollout.Strategy{}, []kind{old(5), old(2, updated, notReady, broken)}, 1, rollout.HoldUnavailable},
		{"nor those that were created with the newest spec", rollout.Strategy{}, []kind{old(5), old(2, updated, notReady, original)}, 1, rollout.HoldUnavailable},
		{"which count for their own workload", rollout.Strategy{}, []kind{old(2, of("a")), old(1, of("a"), updated, notReady, original)}, 0, rollout.HoldWorkload},
		{"and not for others", rollout.Strategy{}, []kind{old(2, of("a")), old(1, of("b"), updated, notReady, original)}, 1, rollout.HoldUnavailable},
		{"nor if they cannot become ready", rollout.Strategy{}, []kind{old(2, of("a")), old(1, of("a"), updated, notReady, original, stuck)}, 1, rollout.HoldUnavailable},
		{"as many as may be unavailable", rollout.Strategy{MaxUnavailable: number(2)}, []kind{old(4, of("a")), old(1, of("a"), updated, notReady, original)}, 1, rollout.HoldWorkload},
		{"as one that others take out does for all", rollout.Strategy{}, []kind{old(5), old(1, updated, notReady, original, underWay)}, 0, rollout.HoldUnavailable},
		{"a workload with two that do not serve", rollout.Strategy{}, []kind{old(1, of("a")), old(2, of("a"), updated, notReady, original)}, 0, rollout.HoldWorkload},
		{"nor while they are updated", rollout.Strategy{}, []kind{old(5), old(2, updated, notReady, broken, inFlight)}, 1, rollout.HoldUnavailable},
		{"but what others do to them does", rollout.Strategy{}, []kind{old(5), old(1, updated, notReady, broken, underWay)}, 0, rollout.HoldUnavailable},
		{"updates under way count", rollout.Strategy{MaxUnavailable: number(3)}, []kind{old(5), old(2, updated, inFlight)}, 1, rollout.HoldUnavailable},
		{"old and not ready come first, and not all at once", rollout.Strategy{}, []kind{old(5), old(2, notReady)}, 1, rollout.HoldUnavailable},
		{"old and stuck come all at once", rollout.Strategy{}, []kind{old(5), old(2, notReady, stuck)}, 2, rollout.HoldUnavailable},
		{"old and not ready do not hold up the others", rollout.Strategy{}, []kind{old(5), old(2, notReady, denied)}, 1, rollout.HoldUnavailable},
		{"an update to an older spec is corrected at once", rollout.Strategy{}, []kind{old(5), old(1, inFlight)}, 1, rollout.HoldUnavailable},
		{"partition", rollout.Strategy{MaxUnavailable: number(9), Partition: number(3)}, []kind{old(5)}, 2, rollout.HoldPartition},
		{"partition of all pods", rollout.Strategy{MaxUnavailable: number(9), Partition: number(5)}, []kind{old(5)}, 0, rollout.HoldPartition},
		{"partition beyond the pods", rollout.Strategy{MaxUnavailable: number(9), Partition: number(50)}, []kind{old(5)}, 0, rollout.HoldPartition},
		{"partition 50%", rollout.Strategy{MaxUnavailable: percent("100%"), Partition: percent("50%")}, []kind{old(5)}, 2, rollout.HoldPartition},
		{"partition 99% leaves one", rollout.Strategy{MaxUnavailable: number(9), Partition: percent("99%")}, []kind{old(5)}, 1, rollout.HoldPartition},
		{"partition 1% keeps one", rollout.Strategy{MaxUnavailable: number(9), Partition: percent("1%")}, []kind{old(5)}, 4, rollout.HoldPartition},
		{"partition 100%", rollout.Strategy{MaxUnavailable: number(9), Partition: percent("100%")}, []kind{old(5)}, 0, rollout.HoldPartition},
		{"pods that cannot be updated are not among the kept ones", rollout.Strategy{MaxUnavailable: number(9), Partition: number(3)},
			[]kind{old(5), old(3, notUpgradable)}, 2, rollout.HoldPartition},
		{"half of the pods cannot be updated, and half are kept", rollout.Strategy{MaxUnavailable: number(9), Partition: number(5)},
			[]kind{old(5), old(5, notUpgradable)}, 0, rollout.HoldPartition},
		{"pods that can be evicted are among the kept ones", rollout.Strategy{MaxUnavailable: number(9), Partition: number(3), Recreate: true},
			[]kind{old(5), old(3, notUpgradable)}, 5, rollout.HoldPartition},
		{"pods whose hot upgrade was given up are not among the kept ones", rollout.Strategy{MaxUnavailable: number(9), Partition: number(2)},
			[]kind{old(3), old(1, aborted)}, 1, rollout.HoldPartition},
		{"pods that are not selected are not among the kept ones", rollout.Strategy{
			MaxUnavailable: number(9), Partition: number(1), Selector: labels.SelectorFromSet(labels.Set{"canary": "yes"}),
		}, []kind{old(5), old(3, labelled("canary", "yes"))}, 2, rollout.HoldPartition},
		{"a large one", rollout.Strategy{MaxUnavailable: number(100), Partition: number(180)},
			[]kind{old(200), old(760, updated), old(40, updated, notReady)}, 20, rollout.HoldPartition},
		{"selector", rollout.Strategy{MaxUnavailable: number(9), Selector: labels.SelectorFromSet(labels.Set{"canary": "yes"})},
			[]kind{old(5), old(2, labelled("canary", "yes"))}, 2, ""},
		{"selector of nothing", rollout.Strategy{Selector: labels.SelectorFromSet(labels.Set{"canary": "yes"})}, []kind{old(5)}, 0, rollout.HoldSelector},
		{"paused", rollout.Strategy{Paused: true}, []kind{old(5), old(1, notReady)}, 0, rollout.HoldPaused},
		{"failures pause", rollout.Strategy{MaxUnavailable: number(9), MaxFailed: 2}, []kind{old(5), old(2, updated, failed)}, 0, rollout.HoldFailures},
		{"fewer failures do not", rollout.Strategy{MaxUnavailable: number(9), MaxFailed: 3}, []kind{old(5), old(2, updated, failed)}, 5, ""},
		{"failures with an older spec do not pause", rollout.Strategy{MaxUnavailable: number(9), MaxFailed: 2}, []kind{old(5), old(2, failed)}, 7, ""},
		{"failed pods are healed in a pause by failures", rollout.Strategy{Halted: true}, []kind{old(5), old(2, failed)}, 2, rollout.HoldFailures},
		{"never all of a small workload", rollout.Strategy{MaxUnavailable: number(9)}, []kind{old(3, of("a")), old(2, of("b"))}, 3, rollout.HoldWorkload},
		{"the only pod of a workload", rollout.Strategy{MaxUnavailable: number(9)}, []kind{old(1, of("a"))}, 1, ""},
		{"a workload's pods that are not ready count", rollout.Strategy{MaxUnavailable: number(9)},
			[]kind{old(2, of("a")), old(1, of("a"), notUpgradable, notReady)}, 1, rollout.HoldWorkload},
		{"a number for each workload", rollout.Strategy{MaxUnavailable: number(9), WorkloadMaxUnavailable: number(1)},
			[]kind{old(3, of("a")), old(3, of("b"))}, 2, rollout.HoldWorkload},
		{"a percentage of each workload, at least one", rollout.Strategy{MaxUnavailable: number(99), WorkloadMaxUnavailable: percent("25%")},
			[]kind{old(3, of("a")), old(9, of("b"))}, 3, rollout.HoldWorkload},
		{"nothing to do", rollout.Strategy{}, []kind{old(5, updated), old(1, notUpgradable)}, 0, ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			got := fleetOf(&r.strategy, r.kinds...).Select(&r.strategy, now, nil)
			if len(got.Pods) != r.want || got.Held != r.held {
				t.Errorf("%d pods, held by %q; want %d, %q", len(got.Pods), got.Held, r.want, r.held)
			}
		})
	}
}

func TestUpdatedPodsHaveToStayReady(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{MinReady: time.Minute}
	f := fleetOf(s, kind{3, nil})
	f.Set(pod(9, updated, func(p *rollout.Pod) { p.ReadySince = now.Add(-10 * time.Second) }))
	got := f.Select(s, now, nil)
	if len(got.Pods) != 0 || !got.Again.Equal(now.Add(50*time.Second)) {
		t.Errorf("%+v", got)
	}
	if got := f.Select(s, now.Add(50*time.Second), nil); len(got.Pods) != 1 {
		t.Errorf("%+v", got)
	}
}

// Defect 7 of the peer: the first error ends the round, so the pod that is first in the order holds up all others.
func TestOneFailingPodDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{}
	f := fleetOf(s, kind{2, nil})
	first := f.Select(s, now, nil).Pods[0]
	denied, _ := f.Get(first)
	denied.RetryAt = now.Add(time.Second)
	f.Set(denied)
	if got := f.Select(s, now, nil); len(got.Pods) != 1 || got.Pods[0] == first || !got.Again.Equal(denied.RetryAt) {
		t.Errorf("%+v, the denied one is %v", got, first)
	}
	if got := f.Select(s, denied.RetryAt, nil); got.Pods[0] != first {
		t.Errorf("the denied pod is not tried again: %+v", got)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	all := number(99)
	priority := func(p *rollout.Pod, value string) { p.Labels = map[string]string{"priority": value} }
	for name, tc := range map[string]struct {
		strategy rollout.Strategy
		pods     []rollout.Pod
		want     []int
	}{
		"who serves nobody is first": {
			rollout.Strategy{}, []rollout.Pod{
				pod(0), pod(1, notReady), pod(2, notReady, phase(corev1.PodUnknown)),
				pod(3, notReady, func(p *rollout.Pod) { p.Phase, p.Scheduled = corev1.PodPending, false }),
				pod(4, func(p *rollout.Pod) { p.ReadySince = now }), pod(5, func(p *rollout.Pod) { p.Restarts = 3 }),
				pod(6, notReady, phase(corev1.PodPending)), pod(7, phase(corev1.PodUnknown)),
			}, []int{3, 6, 2, 7, 1, 4, 5, 0},
		},
		"the youngest is first": {rollout.Strategy{}, []rollout.Pod{pod(2), pod(0), pod(1)}, []int{0, 1, 2}},
		"weights": {
			rollout.Strategy{Weights: []rollout.Weight{
				{Weight: 10, Selector: labels.SelectorFromSet(labels.Set{"a": "1"})}, {Weight: 20, Selector: labels.SelectorFromSet(labels.Set{"b": "1"})},
			}}, []rollout.Pod{
				pod(0), pod(1, labelled("a", "1")), pod(2, labelled("b", "1")), pod(3, func(p *rollout.Pod) { p.Labels = map[string]string{"a": "1", "b": "1"} }),
			}, []int{3, 2, 1, 0},
		},
		"keys in their order, each with its numbers": {
			rollout.Strategy{Orders: []string{"tier", "rank"}}, []rollout.Pod{
				pod(0, labelled("rank", "9")), pod(1, labelled("tier", "p-1")), pod(2, labelled("tier", "p-99999999999999999999999")), pod(3, labelled("rank", "10")),
				pod(4, func(p *rollout.Pod) { p.Labels = map[string]string{"rank": "100", "tier": "p-2"} }), pod(5),
			}, []int{5, 2, 4, 1, 3, 0},
		},
		"numbers at the end of labels; without a label first, as with OpenKruise": {
			rollout.Strategy{Orders: []string{"priority"}}, []rollout.Pod{
				pod(0), pod(1, func(p *rollout.Pod) { priority(p, "p-2") }), pod(2, func(p *rollout.Pod) { priority(p, "p-10") }),
				pod(3, func(p *rollout.Pod) { priority(p, "none") }),
			}, []int{0, 2, 1, 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.strategy.MaxUnavailable = all
			f := rollout.NewFleet(nil)
			for _, p := range tc.pods {
				f.Set(p)
			}
			checkOrder(t, f.Select(&tc.strategy, now, nil).Pods, tc.want)
		})
	}
}

func checkOrder(t *testing.T, got []types.NamespacedName, want []int) {
	t.Helper()
	wanted := make([]types.NamespacedName, len(want))
	for i, n := range want {
		wanted[i] = keyOf(n)
	}
	if !slices.Equal(got, wanted) {
		t.Errorf("got %v\nwant %v", got, wanted)
	}
}

func TestScatter(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		terms         []rollout.Term
		with, without int
		positions     []int // of those with the label
	}{
		"few among many":         {with: 3, without: 6, positions: []int{0, 4, 8}},
		"half":                   {with: 3, without: 3, positions: []int{0, 2, 5}},
		"many among few":         {with: 6, without: 3, positions: []int{0, 2, 3, 5, 6, 8}},
		"one cannot be spread":   {with: 1, without: 4, positions: []int{0}},
		"among one other":        {with: 4, without: 1, positions: []int{0, 1, 2, 3}},
		"none with the label":    {with: 0, without: 4, positions: nil},
		"every value of the key": {terms: []rollout.Term{{Key: "app", Value: "*"}}, with: 3, without: 6, positions: []int{0, 4, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &rollout.Strategy{MaxUnavailable: number(99), Scatter: tc.terms}
			if s.Scatter == nil {
				s.Scatter = []rollout.Term{{Key: "app", Value: "db"}}
			}
			f := rollout.NewFleet(s.Scatter)
			for i := range tc.with {
				f.Set(pod(i, labelled("app", "db")))
			}
			for i := range tc.without {
				f.Set(pod(100 + i))
			}
			var positions []int
			for at, key := range f.Select(s, now, nil).Pods {
				if p, _ := f.Get(key); p.Labels["app"] == "db" {
					positions = append(positions, at)
				}
			}
			if !slices.Equal(positions, tc.positions) {
				t.Errorf("positions %v, want %v", positions, tc.positions)
			}
		})
	}
}
