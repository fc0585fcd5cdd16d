// Package follow watches objects for the commands that show what they do until an operation has ended. What is shown must stay
// out.
package follow

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/wait"
)

// relist is after how long an object is read again in case its watch was lost.
const relist = 10 * time.Second

// ErrDeleted means that the object has been deleted.
var ErrDeleted = errors.New("has been deleted")

// Object passes the object to done, at once and after every change, until done returns true. It returns the last
// version. It calls tick every second while nothing changes, and with the error of a call that is tried again because the API server
// cannot be reached.
func Object[T client.Object](ctx context.Context, api client.WithWatch, list client.ObjectList, object T, done func(T) bool, tick func(error)) (T, error) {
	last, key := object, client.ObjectKeyFromObject(object)
	see := func(now T) bool {
		last = now
		return done(now)
	}
	for {
		object, ok := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) // empty: the client leaves fields that it does not read
		if !ok {
			return last, fmt.Errorf("follow %T: not a pointer", last) // cannot happen
		}
		if err := api.Get(ctx, key, object); err != nil {
			if client.IgnoreNotFound(err) == nil {
				return last, fmt.Errorf("%s %w", key.Name, ErrDeleted)
			}
			if err := again(ctx, err, tick); err != nil {
				return last, err
			}
			continue
		}
		if see(object) {
			return last, nil
		}
		if ctx.Err() != nil {
			return last, context.Cause(ctx)
		}
		ended, err := changes(ctx, api, list, object, see, tick)
		if err != nil {
			err = again(ctx, err, tick)
		}
		if ended || err != nil {
			return last, err
		}
	}
}

// again pauses before a call that has failed is tried again. It returns the error if that is of no use.
func again(ctx context.Context, err error, tick func(error)) error {
	if ctx.Err() != nil || !console.Unreachable(err) {
		return err
	}
	tick(err)
	if wait.For(ctx, wait.RetryDelay) != nil {
		return err
	}
	return nil
}

// changes passes on the changes of the object for a while.
func changes[T client.Object](ctx context.Context, api client.WithWatch, list client.ObjectList, object T, done func(T) bool, tick func(error)) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, relist)
	defer cancel()
	stream, err := api.Watch(ctx, list, client.InNamespace(object.GetNamespace()), client.MatchingFields{"metadata.name": object.GetName()})
	if err != nil {
		return false, err
	}
	defer stream.Stop()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case <-second.C:
			tick(nil)
		case event, ok := <-stream.ResultChan():
			if !ok || event.Type == watch.Error || event.Type == watch.Deleted {
				return false, nil
			}
			if changed, isObject := event.Object.(T); isObject && done(changed) {
				return true, nil
			}
		}
	}
}
