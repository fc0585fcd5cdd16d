package rollout_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/sidecarset/rollout"
)

func readyFor(d time.Duration) change {
	return func(p *rollout.Pod) { p.ReadySince = now.Add(-d) }
}

// A pod that has just become ready may fail again: it counts until minReadySeconds are over, also before its update.
func TestAPodThatIsReadySinceLatelyCountsAsUnavailable(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{MinReady: time.Minute}
	f := fleetOf(s, kind{1, []change{readyFor(10 * time.Second), denied}}, kind{3, nil})
	if got := f.Select(s, now, nil); len(got.Pods) != 0 || got.Held != rollout.HoldUnavailable {
		t.Errorf("%+v", got)
	}
	f.Set(pod(0, readyFor(time.Minute), denied))
	if got := f.Select(s, now, nil); len(got.Pods) != 1 {
		t.Errorf("%+v a minute after it was ready", got)
	}
}

func TestItIsLookedAgainWhenTheFirstPodIsAvailable(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{MinReady: time.Minute}
	var kinds []kind
	for i := range 20 {
		kinds = append(kinds, kind{1, []change{updated, readyFor(time.Duration(20+7*i%20) * time.Second)}})
	}
	f := fleetOf(s, append(kinds, kind{1, nil})...)
	if got := f.Select(s, now, nil); !got.Again.Equal(now.Add(21 * time.Second)) {
		t.Errorf("again at %s, want %s", got.Again, now.Add(21*time.Second))
	}
}

// A pod of an older spec that is not ready has a reason of its own, until somebody begins something on it.
func TestAPodOnWhichAnotherControllerBeginsCountsAlsoWhenItIsNotReady(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{}
	begun := &rollout.Beside{Begun: map[types.UID]time.Time{"p0002": now.Add(10 * time.Second)}}
	for name, tt := range map[string]struct {
		change []change
		beside *rollout.Beside
		want   int // the pod that is updated; -1 for none
	}{
		"nobody has begun anything":    {[]change{notReady, denied}, nil, 0},
		"a restart":                    {[]change{notReady, denied}, begun, -1},
		"a restart, and it may be now": {[]change{notReady}, begun, 2},
	} {
		f := rollout.NewFleet(nil)
		for i := range 2 {
			f.Set(pod(i))
		}
		f.Set(pod(2, append(tt.change, func(p *rollout.Pod) { p.UID = "p0002" })...))
		got := f.Select(s, now, tt.beside)
		if tt.want < 0 && len(got.Pods) != 0 || tt.want >= 0 && (len(got.Pods) != 1 || got.Pods[0] != keyOf(tt.want)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
