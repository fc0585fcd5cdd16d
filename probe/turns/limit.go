package turns

// How the limit is adjusted to the load of the node.
const (
	// minLimit leaves a turn for others if one command does not end.
	minLimit = 2
	// maxPerCPU is the upper limit per CPU, for commands that wait for something else than the CPU.
	maxPerCPU = 16
	// window is the minimum number of commands on which a change is based.
	window = 10
	// crowded and free are mean ratios of the time a command takes alone to the time it takes now. Below crowded the
	// commands slow each other down; above free one more can run.
	crowded = 0.6
	free    = 0.8
)

// limit is how many commands may run at the same time. It grows by one while commands wait and run about as fast as
// ever, and decreases by a quarter if they do not.
type limit struct {
	value, max int
	samples    int
	sum        float64
	waited     bool // a command has waited for its turn since the last change
}

func newLimit(cpus int) limit {
	cpus = max(cpus, 1)
	return limit{value: max(cpus, minLimit), max: max(maxPerCPU*cpus, minLimit)}
}

// observe records the ratio of the shortest time that a command has ever taken to the time it took now.
func (l *limit) observe(ratio float64, waiting bool) {
	l.samples++
	l.sum += ratio
	l.waited = l.waited || waiting
	if l.samples < max(window, 2*l.value) {
		return
	}
	mean := l.sum / float64(l.samples)
	switch {
	case mean < crowded:
		l.value = max(l.value*3/4, minLimit)
	case mean > free && l.waited:
		l.value = min(l.value+1, l.max)
	}
	l.samples, l.sum, l.waited = 0, 0, false
}
