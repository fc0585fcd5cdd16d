package rollout_test

import (
	"testing"
	"time"

	"github.com/refit-project/refit/sidecarset/rollout"
)

func TestTheSelectionNamesThePodsThatHoldOthers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		strategy rollout.Strategy
		others   []rollout.Pod
		held     rollout.Hold
		want     string
	}{
		"an updated pod of another namespace is not ready": {
			others: []rollout.Pod{pod(9, in("tenant"), updated, notReady)}, held: rollout.HoldUnavailable, want: "tenant/p0009",
		},
		"an update has begun": {others: []rollout.Pod{pod(9, in("tenant"), inFlight, updated)}, held: rollout.HoldUnavailable, want: "tenant/p0009"},
		"several": {
			others: []rollout.Pod{pod(9, in("d"), updated, notReady), pod(8, in("c"), updated, notReady), pod(7, in("b"), updated, notReady), pod(6, in("a"), updated, notReady), pod(5, in("e"), updated, notReady)},
			held:   rollout.HoldUnavailable, want: "a/p0006, b/p0007, c/p0008, 2 more",
		},
		"another pod of the workload": {
			strategy: rollout.Strategy{MaxUnavailable: number(3), WorkloadMaxUnavailable: number(1)},
			others:   []rollout.Pod{pod(9, of("web"), updated, original, notReady), pod(8, in("tenant"), of("db"), updated, notReady)},
			held:     rollout.HoldWorkload, want: "shop/p0009",
		},
		"nothing is unavailable": {held: rollout.HoldUnavailable},
	} {
		f := fleetOf(&tt.strategy, kind{2, []change{of("web")}})
		for i := range tt.others {
			f.Set(tt.others[i])
		}
		got := f.Select(&tt.strategy, now, nil)
		if got.Held != tt.held || got.Holders != tt.want {
			t.Errorf("%s: held by %q, %q; want %q, %q", name, got.Held, got.Holders, tt.held, tt.want)
		}
	}
}

func TestThePodThatHasHeldOthersForTheLongestTimeIsNamedFirst(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{}
	f := fleetOf(s, kind{2, nil})
	f.Set(pod(9, in("tenant"), updated, notReady))
	f.Select(s, now, nil)
	f.Set(pod(8, in("other"), updated, notReady))
	if got := f.Select(s, now.Add(time.Minute), nil); got.Holders != "tenant/p0009, other/p0008" {
		t.Errorf("%q", got.Holders)
	}
}
