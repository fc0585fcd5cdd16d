package hotupdate

import "context"

// OpenWithSteps is Open with a hook that is called after each step that a kill could follow.
func OpenWithSteps(ctx context.Context, config Config, step func(string)) (*Updater, error) {
	return open(ctx, config, step)
}
