package result

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/refit-project/refit/internal/fair"
	"github.com/refit-project/refit/internal/guard"
)

// ErrStale is wrapped by an error of a Destination if the object was deleted or changed by another client since it was
// read. The write is retried like any other, without a warning in the log.
var ErrStale = errors.New("the object has changed or is gone")

// Destination is where a Writer writes. K identifies one object.
type Destination[K comparable] interface {
	// Write changes the object of the key to its wanted state. It sends nothing if the object is in that state already. It
	// is called again after any error. It is called concurrently for different keys, never for the same one.
	Write(ctx context.Context, key K) (Requests, error)
}

// Requests counts the requests that one call of Write has sent to the API.
type Requests struct {
	Reads, Writes int
}

// Pace limits how often a Writer writes. Fields without a default are off when zero.
type Pace struct {
	// Settle is how long a request waits for others for the same object, so that they become one write.
	Settle time.Duration
	// Interval is the minimum time from a call of Write that sent something to the next one for the same key.
	Interval time.Duration
	// Yield makes the interval at least as long as the last call of Write took, up to maxYield. Another client that writes the same
	// object has to begin again whenever the object changes during its write, and with a slow API server would not come to an end.
	Yield bool
	// FirstRetry and LastRetry are the first and the longest pause after a failure; the pause doubles each time, and
	// up to a quarter is added at random. The defaults are one second and one minute.
	FirstRetry, LastRetry time.Duration
	// Timeout bounds one call of Write; ten seconds by default.
	Timeout time.Duration
	// Resync is how often every known key is written again, to correct changes by others.
	Resync time.Duration
	// Final bounds the time that Run takes after the end of its context to write what is still due.
	Final time.Duration
}

// maxYield limits the interval that Pace.Yield causes.
const maxYield = 2 * time.Second

func (p Pace) withDefaults() Pace {
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{{&p.FirstRetry, time.Second}, {&p.LastRetry, time.Minute}, {&p.Timeout, 10 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
	return p
}

// Config of a Writer. Only Destination is required.
type Config[K comparable] struct {
	Destination Destination[K]
	Pace        Pace
	// Workers is the number of keys that are written at the same time; one by default.
	Workers int
	// Share returns the owner of a key, such as its namespace. If more keys are due than there are workers, the shares take
	// turns, so that many keys of one do not delay the keys of another. By default all keys have one share.
	Share  func(key K) string
	Guard  *guard.Guard // of the Destination: a panic is an error of the one key
	Logger *slog.Logger
	// Observe is called after every call of Write, by the goroutine that made it.
	Observe func(key K, sent Requests, err error)
}

// Writer calls a Destination for the requested keys: once for several requests at the same time, at most as often as its
// Pace allows, and again after a failure.
type Writer[K comparable] struct {
	config Config[K]

	mu       sync.Mutex
	items    map[K]*item[K]
	due      queue[K]             // items that wait for their time
	turns    fair.Turns[*item[K]] // items that are due and wait for the turn of their share
	requests uint64               // made so far
	wake     chan struct{}        // holds one token: an item may be due earlier than before
	written  chan struct{}        // closed and replaced after each call of Write
}

// NewWriter returns a Writer. It writes while Run runs.
func NewWriter[K comparable](config Config[K]) *Writer[K] {
	config.Pace = config.Pace.withDefaults()
	config.Workers = max(config.Workers, 1)
	if config.Share == nil {
		config.Share = func(K) string { return "" }
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Observe == nil {
		config.Observe = func(K, Requests, error) {}
	}
	return &Writer[K]{
		config: config, items: map[K]*item[K]{}, wake: make(chan struct{}, 1), written: make(chan struct{}),
	}
}

// Request asks for a write of key at the Writer's pace. It does not wait.
func (w *Writer[K]) Request(key K) {
	w.RequestAfter(key, w.config.Pace.Settle, w.config.Pace.Interval)
}

// RequestAfter asks for a write of key after a delay, and no sooner than interval after the last one. The earliest of
// several requests counts. The pause after a failure is not shortened.
func (w *Writer[K]) RequestAfter(key K, delay, interval time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.items[key]
	if i == nil {
		i = &item[K]{key: key, index: notQueued}
		w.items[key] = i
	}
	w.requests++
	i.requested, i.forgotten = w.requests, false
	if i.plan(time.Now().Add(delay), interval) {
		w.enqueue(i)
	}
}

// Forget removes a key: its requests are not written any more. A call of Write in progress is not interrupted.
func (w *Writer[K]) Forget(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.items[key]
	if i == nil {
		return
	}
	i.forgotten, i.due = true, time.Time{}
	if !i.running {
		w.drop(i)
	}
}

// Flush waits until the requests for the keys have been written, and returns why they could not be. A failed write is still
// retried.
func (w *Writer[K]) Flush(ctx context.Context, keys ...K) error {
	w.mu.Lock()
	until := w.requests
	w.mu.Unlock()
	for {
		w.mu.Lock()
		done, err := w.flushed(keys, until)
		written := w.written
		w.mu.Unlock()
		if done {
			return err
		}
		select {
		case <-written:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// flushed reports whether all requests up to a number have been attempted. mu is held.
func (w *Writer[K]) flushed(keys []K, until uint64) (bool, error) {
	var errs []error
	for _, key := range keys {
		i := w.items[key]
		if i == nil || i.forgotten {
			continue
		}
		if i.attempted < min(i.requested, until) {
			return false, nil
		}
		errs = append(errs, i.err)
	}
	return true, errors.Join(errs...)
}
