package control

import (
	"maps"
	"sync"
	"time"
)

// excessPerSecond is how many bytes of large pods, beyond what ordinary pods have, are read from the API server for the rollouts of a
// namespace, on average. Each batch of each rollout reads the pods: with 60 pods of 200 kB and 1,000 rollouts the API server sent 12 MB
// for each, while objects of other namespaces waited.
const excessPerSecond = 2 << 20

// longWait is a wait that is logged.
const longWait = time.Second

// readPace delays the rollouts of a namespace after its large pods were read. The zero value is ready to use.
type readPace struct {
	mu    sync.Mutex
	until map[string]time.Time // by namespace
}

// add is called after a read. It returns how long the rollouts of the namespace have to wait now.
func (p *readPace) add(namespace string, excess int, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until = map[string]time.Time{}
	}
	maps.DeleteFunc(p.until, func(_ string, until time.Time) bool { return !now.Before(until) })
	wait := max(0, p.until[namespace].Sub(now)) + time.Duration(float64(excess)/excessPerSecond*float64(time.Second))
	if wait > 0 {
		p.until[namespace] = now.Add(wait)
	}
	return wait
}

// delay returns how long the rollouts of a namespace have to wait; 0 for not at all.
func (p *readPace) delay(namespace string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.until[namespace].Sub(now))
}
