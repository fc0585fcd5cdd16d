package cli

import (
	"context"
	"fmt"

	"github.com/refit-project/refit/inplace/cli/turn"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/console"
)

// bounded reports whether the update has limits to wait for.
func (u *updater) bounded() bool {
	return u.Turn != nil && (u.Turn.MaxUnavailable.String() != "100%" || !u.Turn.IgnorePodDisruptionBudgets)
}

// turn waits until the pod may become unavailable, if the update stops one of its containers. It reports whether the
// pod has been read again; then the caller must plan again.
func (u *updater) turn(ctx context.Context, update *plan.Update) (waited bool, err error) {
	if !u.bounded() || len(update.Stops(&u.pod.Spec)) == 0 || turn.Held(u.pod, u.Turn.Clock()) {
		return false, nil
	}
	config := *u.Turn
	config.Say = func(what string) { u.Output.Wait("%s", what) }
	release, err := turn.Take(ctx, config, u.pod)
	if err != nil {
		if ctx.Err() == nil && !console.Unreachable(err) {
			return false, fmt.Errorf("wait until the pod may be taken out of service: %w", err)
		}
		return true, u.again(ctx, err)
	}
	u.release = release
	return true, u.read(ctx)
}

// printForecast prints what the update would have to wait for now.
func (u *updater) printForecast(ctx context.Context, update *plan.Update) {
	if !u.bounded() || len(update.Stops(&u.pod.Spec)) == 0 || turn.Held(u.pod, u.Turn.Clock()) {
		return
	}
	reason, err := turn.Forecast(ctx, *u.Turn, u.pod)
	switch {
	case err != nil:
		u.Output.Print("  warning: whether it would have to wait is not known: %s\n", err)
	case reason != "":
		u.Output.Print("  it would have to wait now: %s\n", reason)
	}
}
