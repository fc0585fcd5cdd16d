package rollout_test

import (
	"testing"

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
