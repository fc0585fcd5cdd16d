package usage

import (
	"math"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
)

func TestQuantileBetweenReadings(t *testing.T) {
	t.Parallel()
	histogram := func(counts ...uint64) *dto.Histogram {
		h := &dto.Histogram{SampleCount: new(counts[len(counts)-1])}
		for i, bound := range []float64{0.01, 0.1, 1} {
			h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: new(bound), CumulativeCount: new(counts[i])})
		}
		return h
	}
	before, after := histogram(1000, 1000, 1000, 1000), histogram(1050, 1098, 1100, 1100)
	for q, want := range map[float64]time.Duration{0.25: 5 * time.Millisecond, 0.5: 10 * time.Millisecond, 0.98: 100 * time.Millisecond, 0.99: 550 * time.Millisecond} {
		if got := Quantile(before, after, q); (got - want).Abs() > time.Microsecond {
			t.Errorf("quantile %v = %s, want %s", q, got, want)
		}
	}
	beyond := &dto.Histogram{SampleCount: new(uint64(10)), Bucket: []*dto.Bucket{
		{UpperBound: new(5.0), CumulativeCount: new(uint64(1))}, {UpperBound: new(math.Inf(1)), CumulativeCount: new(uint64(10))},
	}}
	if got := Quantile(&dto.Histogram{SampleCount: new(uint64(0))}, beyond, 0.99); got != 5*time.Second {
		t.Errorf("beyond the last bound: %s", got)
	}
	if got := Quantile(before, before, 0.99); got != 0 {
		t.Errorf("of nothing: %s", got)
	}
}
