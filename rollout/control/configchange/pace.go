package configchange

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// If a ConfigMap used by a thousand workloads is changed in a loop, each change causes a thousand reconciliations, and
// the digest of a Secret takes a tenth of a second. So namespaces take turns, and the work for one does not delay the
// work for others.
const (
	looksPerSecond = 20
	looksAtOnce    = 100
	// whenFull is the delay before a workload is tried again if its namespace already uses all its workers.
	whenFull = 100 * time.Millisecond
)

// paces limits how often, and by how many workers at the same time, the workloads of one namespace are reconciled.
type paces struct {
	workers int // maximum number of workers for one namespace

	mu sync.Mutex
	by map[string]*pace
}

type pace struct {
	limiter *rate.Limiter
	running int
}

func newPaces(workers int) *paces {
	return &paces{workers: max(1, workers/2), by: map[string]*pace{}}
}

// begin returns a function to call at the end of the reconciliation, or after which time to try again.
func (p *paces) begin(namespace string, now time.Time) (done func(), later time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.by[namespace]
	if one == nil {
		p.forgetIdle(now)
		one = &pace{limiter: rate.NewLimiter(looksPerSecond, looksAtOnce)}
		p.by[namespace] = one
	}
	if one.running >= p.workers {
		return nil, whenFull
	}
	reserved := one.limiter.ReserveN(now, 1)
	if delay := reserved.DelayFrom(now); delay > 0 {
		reserved.CancelAt(now)
		return nil, delay
	}
	one.running++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		one.running--
	}, 0
}

// forgetIdle removes the namespaces without relevant state. The caller holds the lock.
func (p *paces) forgetIdle(now time.Time) {
	for namespace, one := range p.by {
		if one.running == 0 && one.limiter.TokensAt(now) >= looksAtOnce {
			delete(p.by, namespace)
		}
	}
}
