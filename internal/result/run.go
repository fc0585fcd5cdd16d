package result

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/refit-project/refit/internal/guard"
)

// Run writes until ctx ends, and returns when all calls of Write have returned. It must not run twice at the same time.
func (w *Writer[K]) Run(ctx context.Context) error {
	var calls sync.WaitGroup
	free := make(chan struct{}, w.config.Workers) // holds one token for each call in progress
	resync, stop := w.ticker()
	defer stop()
	for w.next(ctx, resync, free) {
		i := w.begin(time.Now(), false)
		if i == nil {
			<-free
			continue
		}
		calls.Go(func() {
			defer func() { <-free }()
			w.write(ctx, i)
		})
	}
	calls.Wait()
	w.finish(ctx)
	return nil
}

func (w *Writer[K]) ticker() (<-chan time.Time, func()) {
	if w.config.Pace.Resync <= 0 {
		return nil, func() {}
	}
	t := time.NewTicker(w.config.Pace.Resync + rand.N(w.config.Pace.Resync/10+1)) //nolint:gosec // spreads load, keeps no secret
	return t.C, t.Stop
}

// next waits until an item is due and a worker is free, and takes both; false if ctx has ended.
func (w *Writer[K]) next(ctx context.Context, resync <-chan time.Time, free chan struct{}) bool {
	for ctx.Err() == nil {
		timer := time.NewTimer(w.pause(time.Now()))
		select {
		case <-ctx.Done():
		case <-resync:
			w.requestAll()
		case <-w.wake:
		case <-timer.C:
			select {
			case free <- struct{}{}:
				return true
			case <-ctx.Done():
			}
		}
		timer.Stop()
	}
	return false
}

// pause returns the time until the next item is due.
func (w *Writer[K]) pause(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.turns.Len() > 0:
		return 0
	case len(w.due) == 0:
		return time.Hour
	}
	return max(w.due[0].due.Sub(now), 0)
}

func (w *Writer[K]) requestAll() {
	w.mu.Lock()
	keys := make([]K, 0, len(w.items))
	for key := range w.items {
		keys = append(keys, key)
	}
	w.mu.Unlock()
	for _, key := range keys {
		w.Request(key)
	}
}

// write calls the Destination for an item and plans what follows.
func (w *Writer[K]) write(ctx context.Context, i *item[K]) {
	w.mu.Lock()
	requested, before := i.requested, i.err
	w.mu.Unlock()
	call, cancel := context.WithTimeout(ctx, w.config.Pace.Timeout)
	var sent Requests
	start := time.Now()
	err := w.config.Guard.Do("write", named(i.key), func() (err error) {
		sent, err = w.config.Destination.Write(call, i.key)
		return err
	})
	cancel()
	interrupted := err != nil && ctx.Err() != nil
	if !interrupted {
		w.log(i.key, before, err)
		w.config.Observe(i.key, sent, err)
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	if interrupted { // the error does not come from the destination; the item is written at the end
		i.running, i.due = false, time.Now()
	} else {
		i.end(sent, err, w.config.Pace, time.Since(start), time.Now())
		i.attempted = requested
	}
	if i.forgotten {
		w.drop(i)
	} else {
		w.enqueue(i)
	}
	close(w.written)
	w.written = make(chan struct{})
}

// named returns a key as the subject of a fault. The kind of its object is not known here.
func named[K comparable](key K) guard.Subject {
	return func() guard.Object { return guard.Object{Name: fmt.Sprint(key)} }
}

// log logs a failure once, until the error changes.
func (w *Writer[K]) log(key K, before, err error) {
	switch {
	case err == nil || before != nil && before.Error() == err.Error():
	case errors.Is(err, ErrStale):
		w.config.Logger.Debug("result not written, trying again", "object", fmt.Sprint(key), "err", err)
	default:
		w.config.Logger.Warn("result not written, trying again", "object", fmt.Sprint(key), "err", err)
	}
}

// finish writes what is still due when Run ends.
func (w *Writer[K]) finish(ctx context.Context) {
	if w.config.Pace.Final <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.config.Pace.Final)
	defer cancel()
	w.mu.Lock()
	left := len(w.due) + w.turns.Len()
	w.mu.Unlock()
	for range left {
		if i := w.begin(time.Now(), true); i != nil && ctx.Err() == nil {
			w.write(ctx, i)
		}
	}
}
