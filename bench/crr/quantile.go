package main

import (
	"math"
	"slices"
	"time"
)

// quantile is the smallest value that at least the share q of all are no larger than (nearest rank). Of 30
// values the quantile 0.99 is the largest.
func quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// spread of the values about which nothing was changed: the noise of the machine.
func spread(values []time.Duration) time.Duration {
	if len(values) == 0 {
		return 0
	}
	return slices.Max(values) - slices.Min(values)
}

func mean(values []time.Duration) time.Duration {
	if len(values) == 0 {
		return 0
	}
	var sum time.Duration
	for _, v := range values {
		sum += v
	}
	return sum / time.Duration(len(values))
}
