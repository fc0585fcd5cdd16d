package rollout_test

import (
	"testing"
	"time"

	"github.com/refit-project/refit/sidecarset/rollout"
)

// The pod of a StatefulSet is created again only when it is gone: until then it is no pod of the fleet, and still unavailable.
func TestEvictedPodCountsUntilItsReplacementIsReady(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{Recreate: true}
	f := fleetOf(s, kind{3, []change{notUpgradable, of("db")}})
	first := f.Select(s, now, nil)
	if len(first.Pods) != 1 {
		t.Fatalf("%+v", first)
	}
	evicted, _ := f.Get(first.Pods[0])
	f.Evicted(evicted.Key, now.Add(30*time.Second))
	until := now.Add(5*time.Minute + 30*time.Second)
	held := func(when string) {
		t.Helper()
		if got := f.Select(s, now, nil); len(got.Pods) != 0 || got.Held != rollout.HoldUnavailable {
			t.Errorf("%s: %+v", when, got)
		}
	}
	held("after the eviction")
	f.Set(evicted)
	held("after an event from before the eviction")
	f.Delete(evicted.Key)
	held("while the pod ends")
	if got := f.Select(s, now, nil); !got.Again.Equal(until) {
		t.Errorf("looks again at %s, want %s", got.Again, until)
	}
	replacement := evicted
	replacement.UID, replacement.State, replacement.Ready, replacement.ReadySince = "new", rollout.Updated, false, time.Time{}
	f.Set(replacement)
	held("while the replacement starts")
	blip, _ := f.Get(keyOf(2))
	if blip.Key == evicted.Key {
		t.Fatal("the last pod was evicted first")
	}
	blip.Ready, blip.ReadySince = false, time.Time{}
	f.Set(blip) // such pods were evicted at once, until 0 of 3 were ready
	held("while the replacement starts and another pod is not ready for a moment")
	replacement.Ready, replacement.ReadySince = true, now
	f.Set(replacement)
	if got := f.Select(s, now, nil); len(got.Pods) != 1 {
		t.Errorf("after the replacement is ready: %+v", got)
	}
}

func TestEvictedPodsCountInTheirWorkload(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{Recreate: true, MaxUnavailable: number(9), WorkloadMaxUnavailable: percent("50%")}
	f := fleetOf(s, kind{4, []change{notUpgradable, of("db")}})
	first := f.Select(s, now, nil)
	if len(first.Pods) != 2 {
		t.Fatalf("%+v", first)
	}
	for _, key := range first.Pods {
		f.Evicted(key, now)
	}
	for _, key := range first.Pods {
		f.Delete(key)
	}
	if got := f.Select(s, now, nil); len(got.Pods) != 0 || got.Held != rollout.HoldWorkload {
		t.Errorf("%+v", got)
	}
}

// A workload that was scaled down does not replace the pod.
func TestEvictedPodThatIsNotReplacedIsGivenUp(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{Recreate: true}
	f := fleetOf(s, kind{3, []change{notUpgradable, of("db")}})
	f.Evicted(keyOf(0), now)
	f.Delete(keyOf(0))
	newer := rollout.NewFleet(nil) // of another spec
	newer.Inherit(f)
	for i := range 2 {
		newer.Set(pod(i+1, notUpgradable, of("db")))
	}
	for _, f := range []*rollout.Fleet{f, newer} {
		if got := f.Select(s, now.Add(5*time.Minute-time.Second), nil); len(got.Pods) != 0 {
			t.Errorf("before the time: %+v", got)
		}
		if got := f.Select(s, now.Add(5*time.Minute), nil); len(got.Pods) != 1 {
			t.Errorf("at the time: %+v", got)
		}
	}
}

// A replica that begins to lead when the evicted pod is gone has two that are ready and one that starts, of three. It evicted the next one,
// and one pod of three was ready.
func TestThePodInThePlaceOfAnEvictedOneCountsAlsoForAReplicaThatKnowsOfNoEviction(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{Recreate: true}
	starts := []change{updated, original, notReady, of("db")}
	f := fleetOf(s, kind{2, []change{notUpgradable, of("db")}}, kind{1, starts}, kind{1, []change{notUpgradable, of("web")}})
	got := f.Select(s, now, nil)
	if len(got.Pods) != 1 || got.Pods[0] != keyOf(3) {
		t.Errorf("%+v, want the pod of the other workload only", got)
	}
	f.Delete(keyOf(3))
	if got := f.Select(s, now, nil); len(got.Pods) != 0 || got.Held != rollout.HoldWorkload {
		t.Errorf("%+v, want none", got)
	}
	f.Set(pod(2, updated, original, of("db")))
	if got := f.Select(s, now, nil); len(got.Pods) != 1 {
		t.Errorf("after it is ready: %+v", got)
	}
}

// The status counts it until then.
func TestAnEvictedPodIsGivenUpAlsoWhenNoneIsLeftToBeUpdated(t *testing.T) {
	t.Parallel()
	for _, s := range []*rollout.Strategy{{}, {Recreate: true}} {
		f := fleetOf(s, kind{2, []change{updated, of("db")}})
		f.EvictedByOther(keyOf(8), &rollout.Leaving{UID: "old", Workload: "db", At: now, Gone: now})
		until := now.Add(5 * time.Minute)
		if got := f.Select(s, now, nil); !got.Again.Equal(until) || f.Evictions(now) != 1 || f.Evictions(until) != 0 {
			t.Errorf("again at %s, %d are not replaced", got.Again, f.Evictions(now))
		}
	}
}

// For example after a change of the leader: the pod is being deleted, and the size of its workload is not known.
func TestEvictionThatIsNotKnownCountsUntilThePodIsReplaced(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{Recreate: true}
	leaving := &rollout.Leaving{UID: "old", Workload: "db", At: now, Gone: now.Add(30 * time.Second)}
	for name, kinds := range map[string][]kind{
		"one":       {{2, []change{notUpgradable, of("db")}}, {1, []change{notUpgradable, of("other")}}},
		"of others": {{1, []change{notUpgradable, of("other")}}},
	} {
		f := fleetOf(s, kinds...)
		f.EvictedByOther(keyOf(8), leaving)
		if got := f.Select(s, now, nil); len(got.Pods) != 0 || got.Held != rollout.HoldUnavailable || !got.Again.Equal(now.Add(5*time.Minute+30*time.Second)) {
			t.Errorf("%s: %+v", name, got)
		}
		f.Set(pod(9, updated, of("db"), func(p *rollout.Pod) { p.Created = now }))
		if got := f.Select(s, now, nil); len(got.Pods) != 1 {
			t.Errorf("%s, after the replacement: %+v", name, got)
		}
		f.EvictedByOther(keyOf(8), leaving)
		if got := f.Select(s, now, nil); len(got.Pods) != 1 {
			t.Errorf("%s, with a replacement that was there before: %+v", name, got)
		}
	}
}

func TestEvictionsThatAreNotKnownAddUp(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{Recreate: true, MaxUnavailable: number(2)}
	f := fleetOf(s, kind{3, []change{notUpgradable, of("db")}})
	for i := range 2 {
		f.EvictedByOther(keyOf(8+i), &rollout.Leaving{UID: "old", Workload: "db", At: now, Gone: now})
	}
	for replaced := range 3 {
		if got := f.Select(s, now, nil); len(got.Pods) != replaced {
			t.Errorf("%d of 2 replaced: %+v", replaced, got)
		}
		f.Set(pod(20+replaced, updated, of("db"), func(p *rollout.Pod) { p.Created = now }))
	}
}
