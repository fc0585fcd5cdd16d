package usage

import (
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// Quantile of what came between two readings of a histogram, in its bucket linearly between the bounds.
func Quantile(before, after *dto.Histogram, q float64) time.Duration {
	total := after.GetSampleCount() - before.GetSampleCount()
	if total == 0 {
		return 0
	}
	rank := q * float64(total)
	lower, below := 0.0, 0.0
	for i, bucket := range after.GetBucket() {
		count := float64(bucket.GetCumulativeCount())
		if i < len(before.GetBucket()) {
			count -= float64(before.GetBucket()[i].GetCumulativeCount())
		}
		if count >= rank && count > below {
			if math.IsInf(bucket.GetUpperBound(), 1) { // later than the last bound
				return time.Duration(lower * float64(time.Second))
			}
			return time.Duration((lower + (bucket.GetUpperBound()-lower)*(rank-below)/(count-below)) * float64(time.Second))
		}
		lower, below = bucket.GetUpperBound(), count
	}
	return time.Duration(lower * float64(time.Second))
}
