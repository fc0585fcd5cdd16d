package dashboard

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// linger is how long a watch continues after the last page that used it, so that the next page need not list again.
const linger = 30 * time.Second

// patience is how long a page waits for the first lists of its watches.
const patience = 5 * time.Second

// kind is what is watched.
type kind struct {
	key     string // identifies the watch
	object  client.Object
	list    func() client.ObjectList
	options []client.ListOption
}

// watches has one watch for each kind in use.
type watches struct {
	api     client.WithWatch
	running sync.WaitGroup
	mutex   sync.Mutex
	open    map[string]*collection
	closed  bool
}

// collection is a watched kind. Objects are not changed.
type collection struct {
	informer cache.SharedInformer
	stop     func()
	users    int
	failed   chan struct{} // closed when the first list has failed

	mutex   sync.Mutex
	err     error
	waiting map[chan<- struct{}]bool
}

// use returns the watch of a kind. changed is signalled after each change; it has room for one signal, so that changes add up.
func (w *watches) use(of kind, changed chan<- struct{}) (c *collection, release func()) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	c = w.open[of.key]
	if c == nil {
		c = w.start(of)
		w.open[of.key] = c
	}
	c.users++
	c.listen(changed, true)
	return c, sync.OnceFunc(func() {
		c.listen(changed, false)
		w.mutex.Lock()
		defer w.mutex.Unlock()
		if c.users--; c.users == 0 {
			time.AfterFunc(linger, func() { w.stop(of.key, c) })
		}
	})
}

func (w *watches) stop(key string, c *collection) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if c.users == 0 && w.open[key] == c {
		c.stop()
		delete(w.open, key)
	}
}

// listing says that the client reads by list and watch, as fake clients do.
type listing struct{}

// IsWatchListSemanticsUnSupported has the name that client-go looks for.
func (listing) IsWatchListSemanticsUnSupported() bool { return true }

func (w *watches) start(of kind) *collection {
	c := &collection{failed: make(chan struct{}), waiting: map[chan<- struct{}]bool{}}
	with := func(o *metav1.ListOptions) []client.ListOption {
		return append(slices.Clone(of.options), &client.ListOptions{Raw: o, Limit: o.Limit, Continue: o.Continue})
	}
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := of.list()
			err := w.api.List(ctx, list, with(&o)...)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			stream, err := w.api.Watch(ctx, of.list(), with(&o)...)
			if err != nil { // client-go does not report all errors that it retries
				c.fail(err)
			} else {
				c.recovered()
			}
			return stream, err
		},
	}, listing{})
	c.informer = cache.NewSharedInformer(source, of.object, 0)
	// Neither fails before the informer has been started.
	_ = c.informer.SetTransform(trim)
	_ = c.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { c.fail(err) })
	_, _ = c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { c.changed() }, UpdateFunc: func(any, any) { c.changed() }, DeleteFunc: func(any) { c.changed() },
	})
	end := make(chan struct{})
	c.stop = sync.OnceFunc(func() { close(end) })
	if !w.closed {
		w.running.Go(func() { c.informer.Run(end) })
	}
	return c
}

// close ends all watches. A page that is still open begins none after that.
func (w *watches) close() {
	w.mutex.Lock()
	w.closed = true
	for key, c := range w.open {
		c.stop()
		delete(w.open, key)
	}
	w.mutex.Unlock()
	w.running.Wait()
}

// trim removes what no page shows.
func trim(object any) (any, error) {
	if of, err := meta.Accessor(object); err == nil {
		of.SetManagedFields(nil)
	}
	return object, nil
}

func (c *collection) listen(changed chan<- struct{}, on bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if on {
		c.waiting[changed] = true
	} else {
		delete(c.waiting, changed)
	}
}

func (c *collection) changed() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.signal() // c.err stays: the change may have been read before the last error
}

// recovered forgets why the objects could not be read. There may be none, and so no change.
func (c *collection) recovered() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.err != nil {
		c.err = nil
		c.signal()
	}
}

// signal tells every page that something has changed. The lock is held.
func (c *collection) signal() {
	for waiting := range c.waiting {
		select {
		case waiting <- struct{}{}:
		default: // it has not seen the previous change yet
		}
	}
}

func (c *collection) fail(err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.err = err; !c.informer.HasSynced() {
		select {
		case <-c.failed:
		default:
			close(c.failed)
		}
	}
	c.signal()
}

// ready waits until the objects have been listed, or cannot be, or ctx ends.
func (c *collection) ready(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-c.failed:
	case <-c.informer.HasSyncedChecker().Done():
	}
}

// objects returns the objects, in no order, and why there may be others.
func objects[T client.Object](c *collection) ([]T, error) {
	items := c.informer.GetStore().List()
	all := make([]T, 0, len(items))
	for _, item := range items {
		if object, ok := item.(T); ok {
			all = append(all, object)
		}
	}
	return all, c.problem()
}

var errNotListed = errors.New("the API server has not answered yet")

// problem returns why there may be other objects.
func (c *collection) problem() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch {
	case meta.IsNoMatchError(c.err):
		return nil // the cluster does not have the kind
	case c.err == nil && !c.informer.HasSynced():
		return errNotListed
	}
	return c.err
}

// orUnread returns what an empty table says, if the objects in it could be read.
func orUnread(empty string, of ...*collection) string {
	for _, c := range of {
		if c.problem() != nil {
			return unread
		}
	}
	return empty
}
