package sidecarmode

import (
	"context"
	"time"

	"github.com/refit-project/refit/memory"
)

// settled is how long after the start nearly everything that only the start needs has been used.
const settled = 3 * time.Second

// shrink gives back, once, what only the start needed, and returns when it has or when ctx ends.
func (s *sidecar) shrink(ctx context.Context) error {
	timer := time.NewTimer(settled)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
		if err := memory.Release(); err != nil {
			s.logger.Debug("not all memory that could be is given back", "err", err)
		}
	}
	return nil
}
