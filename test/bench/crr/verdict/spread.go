package verdict

import (
	"slices"
	"time"
)

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
