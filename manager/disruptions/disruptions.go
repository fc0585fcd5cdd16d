// Package disruptions keeps which pods the controllers of this process have begun to take out of service, until the caches show
// it. Without it two controllers that decide at the same moment would each take out as many pods as may be unavailable.
// Which pods may be taken out is decided in package rollout/budget.
package disruptions

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// shown is how long after a write the caches of the other controllers are expected to show it.
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

// NewLedger makes an empty one.
func NewLedger(clock func() time.Time) *Ledger {
	return &Ledger{clock: clock, begun: map[types.UID]entry{}}
}

// Decide calls decide while no other controller decides, and notes the pods that it returns as taken out by the one that asks, such as
// "RestartRollout shop/web". Others reports of a pod whether another controller has begun something on it lately; its caller
// counts such a pod as under way.
func (l *Ledger) Decide(by string, decide func(others func(types.UID) bool) []types.UID) {
	l.DecideBeside(by, func(others map[types.UID]time.Time) []types.UID {
		return decide(func(uid types.UID) bool { return !others[uid].IsZero() })
	})
}

// DecideBeside is Decide for a caller that knows too many pods to ask for each: others are the pods, and when each is expected to
// show what has been begun.
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
