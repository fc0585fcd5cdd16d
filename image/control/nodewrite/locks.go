package nodewrite

import (
	"context"
	"slices"
	"sync"
	"time"
)

// locks has one lock for each name that is locked or waited for, with the waiting changes.
type locks struct {
	mu    sync.Mutex
	named map[string]*lock
	last  map[string]written
}

// written is the last write of a NodeImage.
type written struct {
	generation int64
	took       time.Duration
}

type lock struct {
	held    chan struct{}
	users   int // number of holders and waiters
	waiting []*change
}

// lock waits until the name is free, or the context ends. While it waits, the holder of the lock may carry out the change.
func (l *locks) lock(ctx context.Context, name string, c *change) (unlock func(), err error) {
	l.mu.Lock()
	if l.named == nil {
		l.named = map[string]*lock{}
	}
	one := l.named[name]
	if one == nil {
		one = &lock{held: make(chan struct{}, 1)}
		l.named[name] = one
	}
	one.users++
	one.waiting = append(one.waiting, c)
	l.mu.Unlock()
	unlock = func() { <-one.held; l.release(name, one) }
	select {
	case one.held <- struct{}{}:
		return unlock, nil
	case <-ctx.Done():
	}
	if l.withdraw(one, c) {
		l.release(name, one)
		return nil, ctx.Err()
	}
	one.held <- struct{}{} // wait: the change is being carried out, and uses variables of its caller
	return unlock, nil
}

// withdraw removes a waiting change, unless it is already being carried out.
func (l *locks) withdraw(one *lock, c *change) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(one.waiting, c)
	if at >= 0 {
		one.waiting = slices.Delete(one.waiting, at, at+1)
	}
	return at >= 0
}

// take removes and returns the waiting changes. The caller holds the lock.
func (l *locks) take(name string) []*change {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.named[name].waiting
	l.named[name].waiting = nil
	return waiting
}

// release removes the lock of a name that is neither held nor waited for any more.
func (l *locks) release(name string, one *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(l.named, name)
	}
}

// lastWrite returns the last write of a NodeImage, or the zero value if it is not known.
func (l *locks) lastWrite(name string) written {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last[name]
}

// forget removes the record of a deleted NodeImage, because nodes come and go under new names.
func (l *locks) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.last, name)
}

func (l *locks) wrote(name string, w written) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = map[string]written{}
	}
	l.last[name] = w
}
