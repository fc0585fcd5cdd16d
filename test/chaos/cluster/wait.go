package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrLate means that something did not happen in time.
var ErrLate = errors.New("not in time")

// Until looks again and again.
func Until(ctx context.Context, what string, limit time.Duration, done func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !done(ctx) {
		if err := Pause(ctx, pollInterval); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("%s: %w: %s", what, ErrLate, limit)
			}
			return err
		}
	}
	return nil
}

// Pause waits, or returns the error of the context.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
