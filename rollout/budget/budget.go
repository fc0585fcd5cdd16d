package budget

// Hold is why a pod may not be taken out of service now; empty if it may.
type Hold string

// The reasons.
const (
	// HoldUnavailable: as many pods are unavailable, or under way, as may be.
	HoldUnavailable Hold = "MaxUnavailable"
	// HoldDisruption: a PodDisruptionBudget does not allow it; Budget.Take names it.
	HoldDisruption Hold = "PodDisruptionBudget"
)

// Budget counts what may still be taken out of service. The zero value allows nothing.
type Budget struct {
	limit, unavailable, underWay int
	disruptions                  *Disruptions
}

// New makes a budget of at most limit unavailable pods. Missing is how many pods there should be beside these; if it is negative, there
// are more than there should be, and as many that do not serve are not counted. Evicted is how many were evicted and are not
// replaced: they are missing, and under way. Disruptions are nil if PodDisruptionBudgets are not to be asked.
func New(limit int, pods []Pod, missing, evicted int, disruptions *Disruptions) *Budget {
	b := &Budget{limit: limit, unavailable: max(missing, 0) + evicted, underWay: evicted, disruptions: disruptions}
	idle, stuck := 0, 0 // of those that do not serve; stuck are under way
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

// Unavailable is how many pods are not available, what was taken included.
func (b *Budget) Unavailable() int { return b.unavailable }

// Allows reports whether Take would take the pod, if PodDisruptionBudgets are not asked.
func (b *Budget) Allows(p *Pod) bool {
	switch {
	case p.Stuck:
		return true
	case p.UnderWay:
		return b.underWay <= b.limit // it counts already, with all others
	}
	without := b.unavailable
	if !p.Available {
		without--
	}
	return b.underWay < b.limit && (!p.Ready || without < b.limit)
}

// Take takes a pod of the budget's pods out of service, if it may be. By is the PodDisruptionBudget that does not allow it.
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
