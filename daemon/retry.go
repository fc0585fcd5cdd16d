package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/refit-project/refit/wait"
)

const (
	// retryDelay is between attempts to find what is not there yet at start: socket, API server, CRDs.
	retryDelay = time.Second
	// retryLogInterval is between log lines about the same attempt.
	retryLogInterval = time.Minute
)

// retry repeats try until it succeeds or ctx ends, whose error it then returns.
func retry(ctx context.Context, logger *slog.Logger, doing string, try func() error) error {
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
		if err := wait.For(ctx, retryDelay); err != nil {
			return err
		}
	}
}
