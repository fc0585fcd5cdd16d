// Package informer guards informers: a panic in code that they call for one object, which would end the program, is
// reported on that object, and the informer continues with the next one. It does not know what the code does.
package informer

import (
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/internal/guard"
)

// Places where errs are counted.
const (
	whereEvent     = "event"
	whereTransform = "transform"
	whereIndex     = "index"
)

// Guard returns the informer with all handlers, transforms and indexes that are added from now on guarded by g. An event
// whose handler panics is dropped for this handler. An object that cannot be transformed is kept as received. An object
// that cannot be indexed is not in that index.
func Guard(informer cache.SharedIndexInformer, g *guard.Guard) cache.SharedIndexInformer {
	return guarded{informer, g}
}

type guarded struct {
	cache.SharedIndexInformer
	guard *guard.Guard
}

// AddEventHandler implements cache.SharedIndexInformer.
func (i guarded) AddEventHandler(to cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandler(handler{to, i.guard})
}

// AddEventHandlerWithResyncPeriod implements cache.SharedIndexInformer.
func (i guarded) AddEventHandlerWithResyncPeriod(to cache.ResourceEventHandler, period time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(handler{to, i.guard}, period)
}

// AddEventHandlerWithOptions implements cache.SharedIndexInformer.
func (i guarded) AddEventHandlerWithOptions(to cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithOptions(handler{to, i.guard}, options)
}

// SetTransform implements cache.SharedIndexInformer.
func (i guarded) SetTransform(transform cache.TransformFunc) error {
	return i.SharedIndexInformer.SetTransform(func(object any) (result any, err error) {
		// An error for one object would stop the informer for all objects of its list.
		if !i.guard.Try(whereTransform, subject(object), func() { result, err = transform(object) }) {
			return object, nil
		}
		return result, err
	})
}

// AddIndexers implements cache.SharedIndexInformer.
func (i guarded) AddIndexers(indexers cache.Indexers) error {
	return i.SharedIndexInformer.AddIndexers(Indexers(indexers, i.guard))
}

// Indexers returns the indexers guarded by g.
func Indexers(indexers cache.Indexers, g *guard.Guard) cache.Indexers {
	all := make(cache.Indexers, len(indexers))
	for name, index := range indexers {
		all[name] = func(object any) (keys []string, err error) {
			if !g.Try(whereIndex, subject(object), func() { keys, err = index(object) }) {
				return nil, nil // an error is a panic in client-go
			}
			return keys, err
		}
	}
	return all
}

type handler struct {
	to    cache.ResourceEventHandler
	guard *guard.Guard
}

func (h handler) OnAdd(object any, initial bool) {
	h.guard.Try(whereEvent, subject(object), func() { h.to.OnAdd(object, initial) })
}

func (h handler) OnUpdate(before, object any) {
	h.guard.Try(whereEvent, subject(object), func() { h.to.OnUpdate(before, object) })
}

func (h handler) OnDelete(object any) {
	h.guard.Try(whereEvent, subject(object), func() { h.to.OnDelete(object) })
}

// subject names the object of an event.
func subject(object any) guard.Subject {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	return guard.Of(object)
}
