package rollout_test

import (
	"fmt"
	"testing"

	"github.com/refit-project/refit/sidecarset/rollout"
)

// The change of one pod costs the same however many there are.
func BenchmarkReadinessFlip(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := &rollout.Strategy{}
			f := rollout.NewFleet(nil)
			for i := range n {
				f.Set(pod(i, updated, of(fmt.Sprint(i/10))))
			}
			f.Select(s, now, nil)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				f.Set(pod(7, updated, notReady, of("0")))
				f.Select(s, now, nil)
				f.Counts()
				f.Set(pod(7, updated, of("0")))
				f.Select(s, now, nil)
			}
		})
	}
}
