package turns

import "time"

// forget is by how much the shortest time of a command grows with each run, so that a command that has become slower is
// not taken for a crowded node for ever.
const forget = 0.001

// Pace knows how fast one probe's command can be.
type Pace struct {
	shortest time.Duration
}

// Observe tells the queue how long the command took. One that did not end in time says something only if it has done so
// before.
func (p *Pace) Observe(q *Queue, took time.Duration, ended bool) {
	switch {
	case p.shortest == 0 && ended:
		p.shortest = max(took, 1)
	case p.shortest == 0:
	case !ended:
		q.observe(0)
	default:
		p.shortest = min(p.shortest+time.Duration(float64(p.shortest)*forget)+1, max(took, 1))
		q.observe(float64(p.shortest) / float64(max(took, 1)))
	}
}
