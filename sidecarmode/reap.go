package sidecarmode

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/refit-project/refit/signal"
)

// reapInterval is twice as long as anybody who started a process takes to wait for its end.
var reapInterval = 10 * time.Second // tests of PID 1 use a shorter one

// reap waits for processes that became our children because their parent has ended, such as processes left behind by a
// command, if this program is PID 1. A process that is dead in two consecutive checks has no parent that waits: code here
// that starts a process waits for it at once.
func reap(ctx context.Context, processes *signal.FS, interval time.Duration, logger *slog.Logger) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var before []int
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		dead, err := processes.DeadChildren(ctx)
		if err != nil {
			logger.Debug("children not listed", "err", err)
			continue
		}
		for _, pid := range dead {
			if slices.Contains(before, pid) {
				_, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
				logger.Debug("waited for a process that a command left behind", "pid", pid, "err", err)
			}
		}
		before = dead
	}
}
