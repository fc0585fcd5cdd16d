package follow

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/wait"
)

// Kind is a watched kind of objects.
type Kind struct {
	API     client.WithWatch
	List    client.ObjectList
	Options []client.ListOption
	See     func(context.Context, client.Object)
}

// Follow passes on the objects as they change, until the context ends or they may not be watched. It ignores errors, because what is
// shown is useful without some of the objects.
func (k Kind) Follow(ctx context.Context) {
	for ctx.Err() == nil {
		stream, err := k.API.Watch(ctx, k.List, k.Options...)
		switch {
		case err == nil:
			k.Read(ctx)
			k.drain(ctx, stream)
			stream.Stop()
		case !console.Unreachable(err):
			return
		}
		_ = wait.For(ctx, wait.RetryDelay) // the loop ends with the context
	}
}

// Read passes on the existing objects.
func (k Kind) Read(ctx context.Context) {
	list, ok := k.List.DeepCopyObject().(client.ObjectList) // empty: the client decodes into the objects of a list that has some
	if !ok || k.API.List(ctx, list, k.Options...) != nil {
		return
	}
	_ = meta.EachListItem(list, func(item runtime.Object) error { // the function returns no errors
		k.See(ctx, item.(client.Object))
		return nil
	})
}

func (k Kind) drain(ctx context.Context, stream watch.Interface) {
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-stream.ResultChan():
			if !open || event.Type == watch.Error {
				return
			}
			if object, ok := event.Object.(client.Object); ok && event.Type != watch.Deleted {
				k.See(ctx, object)
			}
		}
	}
}
