package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/sidecarset/rollout"
)

// The numbers match the status of the SidecarSet.
func TestCountsFollowEveryChangeOfAPod(t *testing.T) {
	t.Parallel()
	f := fleetOf(&rollout.Strategy{},
		kind{3, nil}, kind{1, []change{notReady}}, kind{1, []change{inFlight}}, kind{2, []change{updated}}, kind{1, []change{updated, notReady}},
		kind{1, []change{updated, failed}}, kind{1, []change{failed}}, kind{1, []change{notUpgradable}}, kind{1, []change{aborted}})
	want := rollout.Counts{Matched: 12, Updated: 4, Ready: 7, UpdatedReady: 2, NotUpgradable: 1, InFlight: 3, Failed: 3, Aborted: 1, FailedUpdated: 2}
	if diff := cmp.Diff(want, f.Counts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := len(f.Outdated()); got != 7 {
		t.Errorf("%d pods are to be updated, want 7", got)
	}
	for i := range 12 {
		f.Set(pod(i, updated))
	}
	want = rollout.Counts{Matched: 12, Updated: 12, Ready: 12, UpdatedReady: 12}
	if diff := cmp.Diff(want, f.Counts()); diff != "" || len(f.Outdated()) != 0 {
		t.Errorf("after all were updated: %d to be updated (-want +got):\n%s", len(f.Outdated()), diff)
	}
	for i := range 12 {
		f.Delete(keyOf(i))
		f.Delete(keyOf(i)) // a watch may tell twice
	}
	if diff := cmp.Diff(rollout.Counts{}, f.Counts()); diff != "" {
		t.Errorf("after all were deleted (-want +got):\n%s", diff)
	}
	if _, ok := f.Get(keyOf(1)); ok {
		t.Error("a pod that was deleted is known")
	}
}

func aborted(p *rollout.Pod) { p.State = rollout.Aborted }

func TestPodsOfAWorkloadAreCounted(t *testing.T) {
	t.Parallel()
	f := fleetOf(&rollout.Strategy{}, kind{2, []change{of("a")}}, kind{1, []change{of("a"), notReady}}, kind{1, []change{of("a"), inFlight}},
		kind{1, []change{of("b"), notReady}}, kind{1, []change{notReady}})
	for workload, want := range map[string][3]int{"a": {4, 2, 1}, "b": {1, 1, 0}, "c": {0, 0, 0}} {
		if pods, unavailable, underWay := f.Workload(workload, now); [3]int{pods, unavailable, underWay} != want {
			t.Errorf("%s: %d pods, %d unavailable, %d under way; want %v", workload, pods, unavailable, underWay, want)
		}
	}
	f.Set(pod(2, of("a")))
	f.Delete(keyOf(0))
	if pods, unavailable, _ := f.Workload("a", now); pods != 3 || unavailable != 1 {
		t.Errorf("%d pods, %d unavailable", pods, unavailable)
	}
}

// A pod that differs only in what the order among equals uses is not looked at again.
func TestChangesThatMatterToARollout(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change change
		equal  bool
	}{
		"nothing":             {func(*rollout.Pod) {}, true},
		"another pod":         {func(p *rollout.Pod) { p.UID = "another" }, false},
		"state":               {updated, false},
		"an update began":     {inFlight, false},
		"failed":              {func(p *rollout.Pod) { p.Failed = true }, false},
		"not ready":           {func(p *rollout.Pod) { p.Ready = false }, false},
		"ready again":         {func(p *rollout.Pod) { p.ReadySince = now }, false},
		"in another timezone": {func(p *rollout.Pod) { p.ReadySince = p.ReadySince.In(time.FixedZone("x", 3600)) }, true},
		"others begin":        {func(p *rollout.Pod) { p.UnderWay = true }, false},
		"stuck":               {func(p *rollout.Pod) { p.Stuck = true }, false},
		"stops nothing":       {func(p *rollout.Pod) { p.Stops = true }, false},
		"broken before":       {broken, false},
		"not judged":          {func(p *rollout.Pod) { p.Unjudged = true }, false},
		"never updated":       {original, false},
		"not scheduled":       {func(p *rollout.Pod) { p.Scheduled = false }, false},
		"pending":             {phase(corev1.PodPending), false},
		"unknown":             {phase(corev1.PodUnknown), false},
		"labels":              {labelled("app", "db"), false},
		"restarts":            {func(p *rollout.Pod) { p.Restarts = 7 }, true},
	} {
		a, b := pod(0), pod(0, tc.change)
		if a.Equal(&b) != tc.equal || b.Equal(&a) != tc.equal {
			t.Errorf("%s: equal %t, want %t", name, a.Equal(&b), tc.equal)
		}
	}
}
