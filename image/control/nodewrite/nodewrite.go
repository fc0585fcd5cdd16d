// Package nodewrite writes changes of NodeImages. Concurrent changes of one NodeImage are combined into one write. The
// callers decide what to change.
package nodewrite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// change is one change of a NodeImage. apply reports whether it has changed anything, and may be called several times.
// The holder of the lock of the NodeImage sets the other fields when it has carried out the change.
type change struct {
	apply    func(*v1beta1.NodeImage) bool
	done     bool
	err      error
	panicked any
}

// Writer writes NodeImages. The zero value is ready for use.
type Writer struct {
	locks locks
}

// Write changes the labels, the owners and the spec of a NodeImage. The write depends on the version of the spec and
// not of the whole object: the daemon may write the status at any time, and with a slow API server each write would be
// a conflict, while images of deleted jobs would still be pulled. After a conflict Write reads the object from the API
// server, because the cache would be behind again. Concurrent writes of the manager wait for each other, and waiting
// changes are written together: a hundred jobs that begin would otherwise write an object of up to a megabyte a hundred
// times.
//
// to may read from a cache; live reads from the API server. apply reports whether it has changed anything. It may be
// called several times, by another goroutine, until Write returns. Write panics if apply does.
func (w *Writer) Write(ctx context.Context, to client.Client, live client.Reader, name string, apply func(*v1beta1.NodeImage) bool) error {
	c := &change{apply: apply}
	unlock, err := w.locks.lock(ctx, name, c)
	if err != nil {
		return fmt.Errorf("write NodeImage %s: %w", name, err)
	}
	defer unlock()
	if !c.done {
		w.gather(ctx, name)
		(&batch{w, to, live, name}).carryOut(ctx, w.locks.take(name))
	}
	if c.panicked != nil {
		panic(c.panicked) // report the panic on the object of this caller
	}
	if !c.done { // the goroutine that took the change has panicked
		c.err = errAbandoned
	}
	if c.err != nil {
		return fmt.Errorf("write NodeImage %s: %w", name, c.err)
	}
	return nil
}

// maxGather limits how long a write waits for further changes.
const maxGather = 500 * time.Millisecond

// gather waits for further changes, for a part of the time that the last write took. Callers whose changes were written together
// come back at about the same time: without it, the first one would write alone, and all others would wait for two writes.
func (w *Writer) gather(ctx context.Context, name string) {
	select {
	case <-time.After(min(w.locks.lastWrite(name).took/4, maxGather)):
	case <-ctx.Done():
	}
}

// Forget removes the record of a deleted NodeImage.
func (w *Writer) Forget(name string) { w.locks.forget(name) }

// errAbandoned means that a change was to be written together with others, and was not.
var errAbandoned = errors.New("not written with the other changes of it")

// batch carries out changes of one NodeImage while its lock is held.
type batch struct {
	*Writer

	to   client.Client
	live client.Reader
	name string
}

// carryOut writes changes together, or one by one if the API server refuses them together, because it may have refused
// only one of them. The caller holds the lock.
func (b *batch) carryOut(ctx context.Context, changes []*change) {
	err := b.write(ctx, changes)
	for _, c := range changes {
		c.err = err
		if err != nil && len(changes) > 1 && !apierrors.IsConflict(err) && ctx.Err() == nil {
			c.err = b.write(ctx, []*change{c})
		}
		c.done = true
	}
}

func (b *batch) write(ctx context.Context, changes []*change) error {
	reader, cached := client.Reader(b.to), true
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var before v1beta1.NodeImage
		if err := reader.Get(ctx, client.ObjectKey{Name: b.name}, &before); err != nil {
			return err
		}
		if cached && before.Generation < b.locks.lastWrite(b.name).generation { // the cache is behind; the write would be a conflict
			before = v1beta1.NodeImage{}
			if err := b.live.Get(ctx, client.ObjectKey{Name: b.name}, &before); err != nil {
				return err
			}
			b.locks.wrote(b.name, written{generation: before.Generation}) // a NodeImage that was created again starts with generation 1
		}
		reader, cached = b.live, false
		after, changed := applyAll(&before, changes)
		if !changed {
			return nil
		}
		start := time.Now()
		err := patch(ctx, b.to, &before, after)
		if err == nil {
			b.locks.wrote(b.name, written{after.Generation, time.Since(start)})
		}
		return err
	})
}

// applyAll applies changes to a copy. A change that panics has no effect on it.
func applyAll(before *v1beta1.NodeImage, changes []*change) (after *v1beta1.NodeImage, changed bool) {
	after = before.DeepCopy()
	for i, c := range changes {
		if c.panicked != nil {
			continue
		}
		is, ok := c.try(after)
		if !ok {
			return applyAll(before, slices.Concat(changes[:i], changes[i+1:]))
		}
		changed = changed || is
	}
	return after, changed
}

func (c *change) try(object *v1beta1.NodeImage) (changed, ok bool) {
	defer func() {
		if !ok {
			c.panicked = recover()
		}
	}()
	return c.apply(object), true
}
