package kubelet_test

import (
	"math"
	"testing"
	"time"

	"github.com/refit-project/refit/internal/kubelet"
)

// As a duration 10 billion seconds were negative: a pod with them was no longer waited for when it was evicted.
func TestAGracePeriodIsNeverNegative(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		seconds *int64
		want    time.Duration
	}{
		{nil, 30 * time.Second}, {new(int64(0)), 0}, {new(int64(45)), 45 * time.Second}, {new(int64(-1)), 0},
		{new(int64(30 * 24 * 3600)), 720 * time.Hour}, {new(int64(10_000_000_000)), 720 * time.Hour}, {new(int64(math.MaxInt64)), 720 * time.Hour},
	} {
		if got := kubelet.GracePeriod(tt.seconds); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.seconds, got, tt.want)
		}
	}
}
