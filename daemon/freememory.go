package daemon

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"
)

const (
	// collectAt is the default of GOGC. With Go's default of 100 the heap grew more in a burst of work: 23 MiB (RssAnon) after
	// 300 probes a second, now 18, and 14 MiB two minutes later, now 13 (make bench-memory).
	collectAt = 50
	// maxProcs is the default of GOMAXPROCS on nodes with more processors. Go looks for work on each of them, and each keeps
	// memory to allocate from. With 32, on two processors, 500 http probes a second took 45 % more CPU (135 us each instead of 94), and
	// 330 requests left 18.1 MiB (RssAnon) instead of 12.0.
	maxProcs = 2
	// freeMemoryInterval is between looks at what has been allocated.
	freeMemoryInterval = 15 * time.Second
	// idleAllocation is what a daemon without work allocates at most within freeMemoryInterval, in bytes: health checks,
	// metrics, watches.
	idleAllocation = 2 << 20
	// burstAllocation is what a burst allocates at least, in bytes; what is smaller leaves little behind.
	burstAllocation = 8 << 20
	// calmer is how many times less than at its height a burst allocates when it is over. The Events of a burst of requests
	// are sent slowly, for minutes after it.
	calmer = 8
)

// tuneRuntime sets defaults of the Go runtime for a program that every node has; the environment precedes them.
func tuneRuntime() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(min(maxProcs, runtime.GOMAXPROCS(0)))
	}
}

// releaseFreeMemory returns free heap to the operating system once a burst of work is over. Left alone, the Go runtime
// collects the garbage of a burst only after two minutes without another collection, and then returns it slowly, in
// order to have it for the next burst; on a node memory belongs to the pods. After 110 requests at once this returned 2 of
// 13 MB (RssAnon) within 30 s. A daemon without work is left alone.
func releaseFreeMemory(ctx context.Context) error {
	var burst burst
	ticker := time.NewTicker(freeMemoryInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if burst.over(allocatedBytes()) {
				// A collection halves the stacks of goroutines that wait, and two empty a sync.Pool. Each takes 5 ms of CPU.
				runtime.GC()
				runtime.GC()
				debug.FreeOSMemory()
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func allocatedBytes() uint64 {
	sample := []runtimemetrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64()
}

// burst finds the end of bursts of allocation.
type burst struct {
	last uint64 // allocated at the last look, in bytes since the start of the process
	size uint64 // allocated by the burst under way, in bytes
	peak uint64 // the most of it between two looks
}

// over reports whether a burst has ended: much was allocated, and little since the last call.
func (b *burst) over(allocated uint64) bool {
	recent := allocated - b.last
	b.last = allocated
	if recent > max(idleAllocation, b.peak/calmer) {
		b.size, b.peak = b.size+recent, max(b.peak, recent)
		return false
	}
	over := b.size >= burstAllocation
	b.size, b.peak = 0, 0
	return over
}
