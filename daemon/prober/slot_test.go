package prober

import (
	"testing"
	"time"
)

func TestSlotHoldsABatch(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]time.Duration{
		0: time.Second, 10: time.Second, 20: time.Second, 40: 500 * time.Millisecond, 100: 200 * time.Millisecond,
		200: 100 * time.Millisecond, 500: 50 * time.Millisecond, 1000: 20 * time.Millisecond, 3000: 20 * time.Millisecond,
	} {
		if got := slotFor(rate); got != want || time.Second%got != 0 {
			t.Errorf("%v a second: every %s, want %s", rate, got, want)
		}
	}
}
