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
	// collectAt is the default of GOGC. With Go's default of 100 the heap grew more in a burst of work: 23 MiB (RssAnon)
	// after 300 probes a second, now 18, and 14 MiB two minutes later, now 13 (make bench-memory).
	collectAt = 50
	// maxProcs is the default of GOMAXPROCS on nodes with more processors. Go looks for work on each of them, and each keeps
	// memory to allocate from. With 32, on two processors, 500 http probes a second took 45 % more CPU (135 us each instead of 94), and
	// 330 requests left 18.1 MiB (RssAnon) instead of 12.0.
	maxProcs = 2
	// freeMemoryInterval is the time between checks of what has been allocated.
	freeMemoryInterval = 15 * time.Second
	// idleAllocation is the most that a daemon without work allocates within freeMemoryInterval, in bytes: health checks,
	// metrics, watches.
	idleAllocation = 2 << 20
	// burstAllocation is the least that a burst allocates, in bytes. Smaller ones leave little garbage.
	burstAllocation = 8 << 20
	// calmer is the factor between the peak of a burst and its end, in allocations per interval. The Events of a burst of
	// requests are sent slowly, for minutes after it.
	calmer = 8
)

// tuneRuntime sets defaults of the Go runtime for a program on every node; environment variables have precedence.
func tuneRuntime() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(min(maxProcs, runtime.GOMAXPROCS(0)))
	}
}

// releaseFreeMemory returns free heap to the operating system at the end of a burst of work. By default the Go runtime
// collects the garbage of a burst only after two minutes without another collection, and then returns it slowly, in order
// to have it for the next burst; on a node this memory is for the pods. After 110 requests at once this returned 2 of 13 MB
// (RssAnon) within 30 s. It does nothing in a daemon without work.
func releaseFreeMemory(ctx context.Context) error {
	var burst burst
	ticker := time.NewTicker(freeMemoryInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if burst.over(allocatedBytes()) {
				// A collection halves the stacks of waiting goroutines, and two empty a sync.Pool. Each takes 5 ms of CPU.
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

// burst detects the end of bursts of allocation.
type burst struct {
	last uint64 // allocated at the last check, in bytes since the start of the process
	size uint64 // allocated by the current burst, in bytes
	peak uint64 // the most of it between two checks
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
