package daemon

import (
	"os"
	"runtime"
	"runtime/debug"
)

const (
	// collectAt is the default of GOGC. With Go's default of 100 the heap grew more in a burst of work: 23 MiB (RssAnon)
	// after 300 probes a second, now 18, and 14 MiB two minutes later, now 13 (make bench-memory).
	collectAt = 50
	// maxProcs is the default of GOMAXPROCS on nodes with more processors. Go looks for work on each of them, and each keeps
	// memory to allocate from. With 32, on two processors, 500 http probes a second took 45 % more CPU (135 us each instead of 94), and
	// 330 requests left 18.1 MiB (RssAnon) instead of 12.0.
	maxProcs = 2
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
