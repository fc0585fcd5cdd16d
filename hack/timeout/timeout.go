// Package timeout scales the timeouts of demos and of the installation for slow machines, such as emulated ones.
package timeout

import (
	"os"
	"strconv"
	"time"
)

// Scaled returns limit multiplied by the environment variable TIMEOUT_FACTOR, an integer from 1 to 255. Other values, and
// none, leave limit as it is, which is for a machine of ordinary speed.
func Scaled(limit time.Duration) time.Duration {
	if factor, err := strconv.ParseUint(os.Getenv("TIMEOUT_FACTOR"), 10, 8); err == nil && factor > 1 {
		limit *= time.Duration(factor)
	}
	return limit
}
