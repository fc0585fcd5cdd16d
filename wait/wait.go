// Package wait has the one way in which Refit pauses: until a time has passed or a context has ended; and in which its programs
// wait at start for what is not there yet.
package wait

import (
	"context"
	"time"
)

// For returns nil after d, or the context's error if it ends before. The error comes first where d is not positive.
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
