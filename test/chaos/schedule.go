package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/outage"
	"github.com/refit-project/refit/test/chaos/updates"
)

const (
	// breather is the time between two faults.
	breather = time.Second
	// sidecarsTime is how long the faults of sidecars are waited for. Without them the run proves nothing, says the judge.
	sidecarsTime = 5 * time.Minute
)

// faults happen one after the other until the time is over, each kind has happened, enough daemons have been killed and the sidecars
// had their faults.
func (r *run) faults(ctx context.Context, sidecars *updates.Updates) error {
	if r.Calm {
		if err := cluster.Pause(ctx, r.Duration); err != nil {
			return err
		}
		return errOver
	}
	choice, begin := r.choices(), time.Now()
	pairs, each := 1, 1 // CRI faults for each fault of another part, and kills for each CRI fault
	if r.long() {
		pairs, each = 3, 2
	}
	breaks := outage.New(r.cluster, r.journal, r.long() || len(r.Outages) > 0).All()
	breaks = slices.DeleteFunc(breaks, func(o outage.Outage) bool {
		if len(r.Outages) == 0 {
			return o.Asked
		}
		return !slices.Contains(r.Outages, o.Name)
	})
	if len(breaks) == 0 {
		return fmt.Errorf("outages %q: there are none of these names", r.Outages)
	}
	waits := func() bool { return !sidecars.Done() && time.Since(begin) < r.Duration+sidecarsTime }
	var calls, kills, others deck
	for round := 0; round < len(breaks) || time.Since(begin) < r.Duration || r.daemons.Kills() < r.kills() || waits(); round++ {
		for range pairs {
			for range each {
				point := kills.next(r.daemons.Points(), choice)
				if err := r.step(ctx, func() error { return r.daemons.Kill(ctx, point, choice) }); err != nil {
					return err
				}
			}
			call := calls.next(r.daemons.Calls(), choice)
			if err := r.step(ctx, func() error { return r.daemons.Spoil(ctx, call) }); err != nil {
				return err
			}
		}
		if err := r.step(ctx, func() error { return breaks[others.next(len(breaks), choice)].Do(ctx, choice) }); err != nil {
			return err
		}
	}
	return errOver
}

// step makes one fault. A cluster that does not recover in time ends the run.
func (r *run) step(ctx context.Context, fault func() error) error {
	if err := fault(); err != nil {
		return err
	}
	return cluster.Pause(ctx, breather)
}

// errOver is the end of the time for faults.
var errOver = errors.New("the time for faults is over")

// deck deals the numbers below n in a random order, and again.
type deck struct{ left []int }

func (d *deck) next(n int, choice *rand.Rand) int {
	if len(d.left) == 0 {
		d.left = choice.Perm(n)
	}
	number := d.left[0]
	d.left = d.left[1:]
	return number
}
