package node

import (
	"context"

	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/queue"
	"github.com/refit-project/refit/internal/guard"
)

// guarded is a puller that converts a panic to a failure of the one pull.
type guarded struct {
	to    queue.Puller
	guard *guard.Guard
}

// Present implements queue.Puller.
func (p guarded) Present(ctx context.Context, reference image.Reference) (id string, err error) {
	err = p.guard.Do("images", named(reference), func() (err error) {
		id, err = p.to.Present(ctx, reference)
		return err
	})
	return id, err
}

// Pull implements queue.Puller.
func (p guarded) Pull(ctx context.Context, want image.Want, report func(pulled, total int64)) (pulled queue.Pulled, err error) {
	err = p.guard.Do("images", named(want.Reference), func() (err error) {
		pulled, err = p.to.Pull(ctx, want, report)
		return err
	})
	return pulled, err
}

// named returns an image as the subject of a guard.
func named(reference image.Reference) guard.Subject {
	return func() guard.Object { return guard.Object{Kind: "Image", Name: reference.String()} }
}
