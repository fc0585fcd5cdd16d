// Package patience makes the demos wait longer where everything takes longer, as on an emulated machine.
package patience

import (
	"os"
	"strconv"
	"time"
)

// Of is how long to wait for what takes at most limit on an ordinary machine: TIMEOUT_FACTOR times as long, where the
// environment has this.
func Of(limit time.Duration) time.Duration {
	if factor, err := strconv.ParseUint(os.Getenv("TIMEOUT_FACTOR"), 10, 8); err == nil && factor > 1 {
		limit *= time.Duration(factor)
	}
	return limit
}
