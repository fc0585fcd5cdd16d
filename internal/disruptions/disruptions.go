// Package disruptions remembers which pods the controllers of this process have begun to take out of service, until the
// caches show it. Without it, two controllers that decide at the same moment would each take out as many pods as may be
// unavailable. Which pods may be taken out is decided in package rollout/budget.
package disruptions

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// shown is the time after a write within which the caches of the other controllers are expected to show it.
const shown = 10 * time.Second

// Ledger is safe for concurrent use. All controllers that take pods out of service share one.
type Ledger struct {
	clock func() time.Time

	mu    sync.Mutex
	begun map[types.UID]entry
}

type entry struct {
	by    string
	until time.Time
}

// NewLedger returns an empty Ledger.
func NewLedger(clock func() time.Time) *Ledger {
	return &Ledger{clock: clock, begun: map[types.UID]entry{}}
}

// Decide calls decide while no other controller decides. It records the pods that decide returns as taken out by the
// caller, such as "RestartRollout shop/web". others reports whether another controller has recently begun to take out a
// pod; the caller counts such a pod as being taken out.
func (l *Ledger) Decide(by string, decide func(others func(types.UID) bool) []types.UID) {
	l.DecideBeside(by, func(others map[types.UID]time.Time) []types.UID {
		return decide(func(uid types.UID) bool { return !others[uid].IsZero() })
	})
}

// DecideBeside is Decide for a caller with too many pods to ask for each: others are the pods of other controllers, and
// when the caches are expected to show each.
func (l *Ledger) DecideBeside(by string, decide func(others map[types.UID]time.Time) []types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock()
	maps.DeleteFunc(l.begun, func(_ types.UID, e entry) bool { return !now.Before(e.until) })
	others := map[types.UID]time.Time{}
	for uid, e := range l.begun {
		if e.by != by {
			others[uid] = e.until
		}
	}
	for _, uid := range decide(others) {
		l.begun[uid] = entry{by: by, until: now.Add(shown)}
	}
}
