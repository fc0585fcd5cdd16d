package daemon

import (
	"context"
	"time"

	"github.com/refit-project/refit/memory"
)

// calmBeforeRelease is how long nothing has to end before memory is given back: a burst takes it again.
const calmBeforeRelease = 15 * time.Second

// releaseMemory gives back to the operating system what the start or a burst of requests took, once it is over. Left to
// itself the Go runtime keeps it for the next; on a node memory belongs to the pods. A daemon with nothing to do never
// calls release.
func releaseMemory(ctx context.Context, worked <-chan struct{}, release func()) error {
	timer := time.NewTimer(calmBeforeRelease)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-worked:
			timer.Reset(calmBeforeRelease)
		case <-timer.C:
			release()
		case <-ctx.Done():
			return nil
		}
	}
}

// noteWork tells releaseMemory that something has just been done.
func (w *worker) noteWork() {
	select {
	case w.worked <- struct{}{}:
	default: // told already
	}
}

func (w *worker) release() {
	if err := memory.Release(); err != nil {
		w.logger.Debug("not all memory that could be is given back", "err", err)
	}
}
