package wait

import (
	"context"
	"log/slog"
	"time"
)

const (
	// RetryDelay is between two attempts.
	RetryDelay = time.Second
	// retryLogInterval is between log lines about the same attempt.
	retryLogInterval = time.Minute
)

// Retry repeats try, once a second, until it succeeds or ctx ends, whose error it then returns. A program that starts waits in
// this way for what is not there yet, as the API server: one that exits instead is started again by kubelet after up to five
// minutes.
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
