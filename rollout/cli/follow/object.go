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
)

// relist is after how long an object is read again in case its watch was lost.
const relist = 10 * time.Second

// ErrDeleted means that the object has been deleted.
var ErrDeleted = errors.New("has been deleted")

// Object passes the object to done, at once and after every change, until done returns true. It returns the last
// version.
func Object[T client.Object](ctx context.Context, api client.WithWatch, list client.ObjectList, object T, done func(T) bool, tick func()) (T, error) {
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
			return last, err
		}
		if see(object) {
			return last, nil
		}
		if ctx.Err() != nil {
			return last, context.Cause(ctx)
		}
		if ended, err := changes(ctx, api, list, object, see, tick); ended || err != nil {
			return last, err
		}
	}
}

// changes passes on the changes of the object for a while.
func changes[T client.Object](ctx context.Context, api client.WithWatch, list client.ObjectList, object T, done func(T) bool, tick func()) (bool, error) {
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
			tick()
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
