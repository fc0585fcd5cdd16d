package turns

import "time"

const (
	// firstCost is the assumed CPU time of a command of which nothing is known yet.
	firstCost = 30 * time.Millisecond
	// maxCost is the most that a command is assumed to cost. A runtime needs 30 to 50 ms of CPU time to run a command in a
	// container; a command that takes longer waits for something else, or uses the CPU of its own pod.
	maxCost = 50 * time.Millisecond
	// burst is for how long the budget may be saved, so that probes that are due together run together.
	burst = 2 * time.Second
	// weight of the last command in the mean cost.
	weight = 1.0 / 64
)

// budget limits the CPU time that the runtime uses for commands. The daemon cannot read what the runtime uses: that takes
// access to the node's cgroups. So the time that commands take while nothing slows them down is the estimate.
type budget struct {
	cpus float64 // that commands may use on average
	cost time.Duration
	// paid is the time at which the budget has covered all commands so far.
	paid time.Time
}

func newBudget(cpus float64) budget { return budget{cpus: cpus, cost: firstCost} }

// wait returns how long to wait until another command may run; 0 or less: it may run now.
func (b *budget) wait(now time.Time) time.Duration { return b.paid.Add(-burst).Sub(now) }

// spend records that a command runs.
func (b *budget) spend(now time.Time) {
	if b.paid.Before(now) {
		b.paid = now
	}
	b.paid = b.paid.Add(time.Duration(float64(b.cost) / b.cpus))
}

// observe records the shortest time of a command.
func (b *budget) observe(shortest time.Duration) {
	b.cost += time.Duration(weight * float64(min(shortest, maxCost)-b.cost))
}
