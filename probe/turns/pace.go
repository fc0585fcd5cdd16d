package turns

import "time"

// forget is by how much the recorded shortest time of a command grows with each run, so that a command that has become
// slower does not make the node look crowded for ever.
const forget = 0.001

// Pace records the shortest time of one probe's command.
type Pace struct {
	shortest time.Duration
}

// Observe reports to the queue how long the command took. A command that did not end in time only counts if it has
// ended in time before.
func (p *Pace) Observe(q *Queue, took time.Duration, ended bool) {
	switch {
	case p.shortest == 0 && ended:
		p.shortest = max(took, 1)
	case p.shortest == 0:
	case !ended:
		q.observe(p.shortest, 0)
	default:
		p.shortest = min(p.shortest+time.Duration(float64(p.shortest)*forget)+1, max(took, 1))
		q.observe(p.shortest, max(took, 1))
	}
}
