// Package wait has the only functions by which Refit pauses, until a time has passed or a context has ended, and by which
// its programs wait at start for what is not available yet.
package wait

import (
	"context"
	"time"
)

// For waits for d and returns nil, or the context's error if it ends before. If d is not positive, the error of ctx has
// precedence.
func For(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
