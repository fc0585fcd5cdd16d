package rollout_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/sidecarset/rollout"
)

// A percentage below 100% does not hold back all of several pods, but it does protect an only one.
func TestPartitionAsAPercentageOfFewPods(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		partition *intstr.IntOrString
		pods      int
		want      int // updated
	}{
		"the only pod, half of it is kept":     {percent("50%"), 1, 0},
		"the only pod, a little of it is":      {percent("1%"), 1, 0},
		"the only pod, nothing of it is":       {percent("0%"), 1, 1},
		"two pods, nearly all are kept":        {percent("99%"), 2, 1},
		"two pods, all are kept":               {percent("100%"), 2, 0},
		"two pods, and as many as a number":    {number(2), 2, 0},
		"two pods, and a number of one":        {number(1), 2, 1},
		"three pods, half of them, rounded up": {percent("50%"), 3, 1},
	} {
		strategy := rollout.Strategy{MaxUnavailable: number(9), Partition: tc.partition}
		got := fleetOf(&strategy, kind{tc.pods, nil}).Select(&strategy, now, nil)
		if len(got.Pods) != tc.want || (tc.want < tc.pods) != (got.Held == rollout.HoldPartition) {
			t.Errorf("%s: %d of %d pods are updated, held %q; want %d", name, len(got.Pods), tc.pods, got.Held, tc.want)
		}
	}
}

// The manager has not seen yet that they are being deleted, or their replacements have not come.
func TestEvictedPodsAreNotKept(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		partition *intstr.IntOrString
		gone      int // of the evicted pods
		want      int // evicted in all
	}{
		"a number, all are there":          {number(3), 0, 1},
		"a number, all are gone":           {number(3), 4, 1},
		"half, all are there":              {percent("50%"), 0, 2},
		"half, one of them is gone":        {percent("50%"), 1, 2},
		"half, all are gone":               {percent("50%"), 4, 2},
		"none is kept, and all are there":  {number(0), 0, 4},
		"one is kept, and two of it there": {number(1), 1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &rollout.Strategy{Recreate: true, MaxUnavailable: number(4), WorkloadMaxUnavailable: number(4), Partition: tc.partition}
			f := fleetOf(s, kind{4, []change{notUpgradable, of("db")}})
			evicted := map[types.NamespacedName]bool{}
			for range 3 {
				for _, key := range f.Select(s, now, nil).Pods {
					if evicted[key] {
						t.Fatalf("%s was evicted twice", key)
					}
					f.Evicted(key, now.Add(30*time.Second))
					if evicted[key] = true; len(evicted) <= tc.gone {
						f.Delete(key)
					}
				}
			}
			if len(evicted) != tc.want {
				t.Errorf("%d pods were evicted, want %d", len(evicted), tc.want)
			}
		})
	}
}
