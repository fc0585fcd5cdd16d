package probe

import (
	"context"
	"fmt"
)

// Counter counts the selected processes. An error says that they could not be counted.
type Counter interface {
	Count(ctx context.Context) (int, error)
}

// Process succeeds if at least one process exists. The result is the number of processes.
type Process struct {
	Counter Counter
}

// Probe implements Prober.
func (p Process) Probe(ctx context.Context) Outcome {
	n, err := p.Counter.Count(ctx)
	switch {
	case err != nil:
		return unknown(err)
	case n == 0:
		return failed("no such process")
	}
	return Outcome{State: Succeeded, Message: fmt.Sprint(n)}
}
