package rollout_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/sidecarset/rollout"
)

func uid(uid types.UID) change { return func(p *rollout.Pod) { p.UID = uid } }

func created(at time.Time) change { return func(p *rollout.Pod) { p.Created = at } }

// shopOf is a fleet of a workload of three pods, 0 to 2, and another of one pod, 3.
func shopOf() *rollout.Fleet {
	f := rollout.NewFleet(nil)
	for i, name := range []types.UID{"u0", "u1", "u2"} {
		f.Set(pod(i, notUpgradable, of("db"), uid(name)))
	}
	f.Set(pod(3, notUpgradable, of("web"), uid("u3")))
	return f
}

func workloadIs(t *testing.T, f *rollout.Fleet, when, workload string, want [3]int) {
	t.Helper()
	if pods, unavailable, underWay := f.Workload(workload, now); [3]int{pods, unavailable, underWay} != want {
		t.Errorf("%s: %s has %d pods, %d unavailable, %d under way; want %v", when, workload, pods, unavailable, underWay, want)
	}
}

// Of the pods that are not ready the one that was created in the place of another is under way, and no other.
func TestOnlyTheReplacementOfAnEvictedPodIsUnderWay(t *testing.T) {
	t.Parallel()
	f := shopOf()
	f.Evicted(keyOf(0), now.Add(30*time.Second))
	workloadIs(t, f, "evicted", "db", [3]int{3, 1, 1})
	f.Delete(keyOf(0))
	workloadIs(t, f, "gone", "db", [3]int{3, 1, 1})
	f.Set(pod(1, notUpgradable, notReady, of("db"), uid("u1")))
	workloadIs(t, f, "another is not ready", "db", [3]int{3, 2, 1})
	f.Set(pod(4, updated, notReady, of("db"), uid("new")))
	workloadIs(t, f, "its replacement starts", "db", [3]int{3, 2, 1})
	if n := f.Evictions(now); n != 0 {
		t.Errorf("%d are not replaced while the replacement starts", n)
	}
	f.Set(pod(5, updated, notReady, of("web"), uid("scaled")))
	workloadIs(t, f, "a new pod of another workload", "web", [3]int{2, 1, 0})
	f.Set(pod(4, updated, notReady, stuck, of("db"), uid("new")))
	workloadIs(t, f, "its replacement cannot start", "db", [3]int{3, 2, 0})
}

// When the workload has as many pods as before, one that is deleted later is not missed.
func TestAnEvictionIsOverWhenTheReplacementIsReady(t *testing.T) {
	t.Parallel()
	for name, replacement := range map[string][]change{"ready": {updated}, "stuck": {updated, notReady, stuck}} {
		f := shopOf()
		f.Evicted(keyOf(0), now.Add(30*time.Second))
		f.Delete(keyOf(0))
		if n := f.Evictions(now); n != 1 {
			t.Errorf("%s: %d evictions", name, n)
		}
		f.Set(pod(1, notUpgradable, notReady, of("db"), uid("u1")))
		f.Set(pod(5, updated, notReady, of("web"), uid("scaled")))
		f.Set(pod(4, append(replacement, of("db"), uid("new"))...))
		if n := f.Evictions(now); n != 0 {
			t.Errorf("%s: %d evictions with a replacement", name, n)
		}
		f.Delete(keyOf(4))
		if n := f.Evictions(now); n != 0 {
			t.Errorf("%s: %d evictions after the workload was scaled down", name, n)
		}
	}
}

func TestThePodOfAStatefulSetIsReplacedUnderItsName(t *testing.T) {
	t.Parallel()
	f := shopOf()
	f.Evicted(keyOf(0), now.Add(30*time.Second))
	f.Delete(keyOf(1))
	if n := f.Evictions(now); n != 1 {
		t.Errorf("%d evictions while it ends, and another was deleted", n)
	}
	f.Set(pod(1, notUpgradable, of("db"), uid("u1")))
	f.Delete(keyOf(0))
	f.Set(pod(0, updated, notReady, of("db"), uid("again")))
	if n := f.Evictions(now); n != 0 {
		t.Errorf("%d evictions after it was created again", n)
	}
	if p, ok := f.Find("u0"); ok {
		t.Errorf("the pod of that UID is %+v", p)
	}
	if p, ok := f.Find("again"); !ok || p.Key != keyOf(0) {
		t.Errorf("found %t %+v", ok, p)
	}
	f.Evicted(keyOf(9), now) // gone before the answer to its eviction
	if n := f.Evictions(now); n != 0 {
		t.Errorf("%d evictions after the eviction of a pod that is gone", n)
	}
}

// What was created after the eviction replaces the pod, what was there before does not.
func TestTheReplacementOfAPodThatAnotherReplicaHasEvictedIsKnown(t *testing.T) {
	t.Parallel()
	f := rollout.NewFleet(nil)
	f.Set(pod(1, updated, of("db"), uid("u1"), notReady))
	f.Set(pod(2, updated, of("db"), uid("u2")))
	f.Set(pod(3, updated, of("web"), uid("u3"), notReady))
	f.Set(pod(4, updated, of("db"), uid("new"), notReady, created(now.Add(time.Second))))
	f.EvictedByOther(keyOf(0), &rollout.Leaving{UID: "u0", Workload: "db", At: now, Gone: now.Add(30 * time.Second)})
	workloadIs(t, f, "its replacement starts", "db", [3]int{3, 2, 1})
	workloadIs(t, f, "beside it", "web", [3]int{1, 1, 0})
}

func TestOnlyAnEvictedPodThatIsCreatedAgainIsLeaving(t *testing.T) {
	t.Parallel()
	evicted := func(status corev1.ConditionStatus) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: status, LastTransitionTime: metav1.NewTime(now)}}
	}
	end := &metav1.Time{Time: now.Add(30 * time.Second)}
	owner := []metav1.OwnerReference{{UID: "db", Controller: new(true)}}
	for name, tt := range map[string]struct {
		deletion   *metav1.Time
		conditions []corev1.PodCondition
		owners     []metav1.OwnerReference
		want       bool
	}{
		"evicted":                          {end, evicted(corev1.ConditionTrue), owner, true},
		"to be evicted":                    {nil, evicted(corev1.ConditionTrue), owner, false},
		"deleted":                          {end, nil, owner, false},
		"deleted after an eviction failed": {end, evicted(corev1.ConditionFalse), owner, false},
		"of nobody":                        {end, evicted(corev1.ConditionTrue), nil, false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u0", DeletionTimestamp: tt.deletion, OwnerReferences: tt.owners}}
		pod.Status.Conditions = tt.conditions
		if got := rollout.LeavingOf(pod, true); (got != nil) != tt.want || got != nil && (got.Workload != "db" || !got.At.Equal(now)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The reason that is shown is one that the user can act on.
func TestWhyNoPodIsUpdatedNow(t *testing.T) {
	t.Parallel()
	unjudged := func(p *rollout.Pod) { p.Unjudged = true }
	for name, tt := range map[string]struct {
		strategy rollout.Strategy
		kinds    []kind
		beside   *rollout.Beside
		want     int
		held     rollout.Hold
	}{
		"paused":                                  {rollout.Strategy{Paused: true}, []kind{{2, nil}}, nil, 0, rollout.HoldPaused},
		"paused when all are updated":             {rollout.Strategy{Paused: true}, []kind{{2, []change{updated}}}, nil, 0, ""},
		"paused when none can be updated":         {rollout.Strategy{Paused: true}, []kind{{2, []change{notUpgradable}}}, nil, 0, ""},
		"paused when some are to be evicted":      {rollout.Strategy{Paused: true, Recreate: true}, []kind{{2, []change{notUpgradable}}}, nil, 0, rollout.HoldPaused},
		"kept by the partition, after a failure":  {rollout.Strategy{Partition: number(1)}, []kind{{1, []change{denied}}, {1, []change{updated}}}, nil, 0, rollout.HoldPartition},
		"code has failed that judges a pod":       {rollout.Strategy{}, []kind{{1, []change{unjudged}}, {1, nil}}, nil, 1, ""},
		"its namespace is doubtful for evictions": {rollout.Strategy{}, []kind{{1, nil}}, &rollout.Beside{Doubtful: map[string]time.Time{"shop": now.Add(time.Minute)}}, 1, ""},
		"updates have been begun of all":          {rollout.Strategy{}, []kind{{3, []change{inFlight}}}, nil, 3, ""},
	} {
		got := fleetOf(&tt.strategy, tt.kinds...).Select(&tt.strategy, now, tt.beside)
		if len(got.Pods) != tt.want || got.Held != tt.held || got.Disruption != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// One that did not serve before either is on its way out like any other, until it is replaced.
func TestAnEvictedPodThatWasBrokenBeforeCountsAsUnavailable(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{Recreate: true}
	f := rollout.NewFleet(nil)
	f.Set(pod(0, notUpgradable, notReady, broken, of("db"), uid("u0")))
	f.Set(pod(1, notUpgradable, of("db"), uid("u1")))
	f.Set(pod(2, notUpgradable, of("db"), uid("u2")))
	f.Evicted(keyOf(0), now.Add(30*time.Second))
	if got := f.Select(s, now, nil); len(got.Pods) != 0 || got.Held != rollout.HoldUnavailable {
		t.Errorf("while it ends: %+v", got)
	}
	f.Delete(keyOf(0))
	if got := f.Select(s, now, nil); len(got.Pods) != 0 || got.Held != rollout.HoldUnavailable {
		t.Errorf("when it has ended: %+v", got)
	}
}
