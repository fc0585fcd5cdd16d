package wait

import (
	"context"
	"log/slog"
	"time"
)

const (
	// RetryDelay is the time between two attempts.
	RetryDelay = time.Second
	// retryLogInterval is the time between log lines about the same operation.
	retryLogInterval = time.Minute
)

// Retry repeats try once a second until it succeeds or ctx ends, and returns the error of ctx then. A starting program uses
// it to wait for what is not available yet, such as the API server: if it exited instead, kubelet would restart it after up
// to five minutes.
func Retry(ctx context.Context, logger *slog.Logger, doing string, try func() error) error {
	var logged time.Time
	for {
		err := try()
		if err == nil {
			return nil
		}
		if time.Since(logged) > retryLogInterval && ctx.Err() == nil {
			logger.Warn("cannot "+doing+" yet, retrying", "err", err)
			logged = time.Now()
		}
		if err := For(ctx, RetryDelay); err != nil {
			return err
		}
	}
}
