package budget

// Hold says why a pod may not be made unavailable now; empty if it may.
type Hold string

// The reasons.
const (
	// HoldUnavailable means that as many pods are unavailable, or have an operation in progress, as allowed.
	HoldUnavailable Hold = "MaxUnavailable"
	// HoldDisruption means that a PodDisruptionBudget does not allow it; Budget.Take returns its name.
	HoldDisruption Hold = "PodDisruptionBudget"
)

// Budget counts how many pods may still be made unavailable. The zero value allows nothing.
type Budget struct {
	limit, unavailable, underWay int
	disruptions                  *Disruptions
}

// New returns a budget of at most limit unavailable pods. missing is how many more pods there should be; if it is
// negative, there are too many pods, and as many that do not serve are not counted. evicted is how many pods were
// evicted and are not replaced yet: they are missing, and count as operations in progress. disruptions is nil if
// PodDisruptionBudgets are ignored.
func New(limit int, pods []Pod, missing, evicted int, disruptions *Disruptions) *Budget {
	b := &Budget{limit: limit, unavailable: max(missing, 0) + evicted, underWay: evicted, disruptions: disruptions}
	idle, stuck := 0, 0 // pods that do not serve; an operation is in progress on the stuck ones
	for i := range pods {
		p := &pods[i]
		if !p.Available {
			b.unavailable++
		}
		if p.UnderWay {
			b.underWay++
		}
		switch {
		case p.Ready:
		case !p.UnderWay:
			idle++
		case p.Stuck:
			stuck++
		}
	}
	surplus := max(-missing, 0)
	idle = min(idle, surplus)
	stuck = min(stuck, surplus-idle)
	b.unavailable -= idle + stuck
	b.underWay -= stuck
	return b
}

// Unavailable returns how many pods are not available, including those taken.
func (b *Budget) Unavailable() int { return b.unavailable }

// Allows reports whether Take would allow the pod apart from PodDisruptionBudgets.
func (b *Budget) Allows(p *Pod) bool {
	switch {
	case p.Stuck:
		return true
	case p.UnderWay:
		return b.underWay <= b.limit // it already counts, like all others
	}
	without := b.unavailable
	if !p.Available {
		without--
	}
	return b.underWay < b.limit && (!p.Ready || without < b.limit)
}

// Take makes one of the budget's pods unavailable if that is allowed. by is the PodDisruptionBudget that does not allow it.
func (b *Budget) Take(p *Pod) (hold Hold, by string) {
	if !b.Allows(p) {
		return HoldUnavailable, ""
	}
	if name := b.disruptions.Take(p); name != "" {
		return HoldDisruption, name
	}
	if p.UnderWay {
		return "", ""
	}
	b.underWay++
	if p.Available {
		b.unavailable++
	}
	return "", ""
}
