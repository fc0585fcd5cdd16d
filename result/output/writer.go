package result

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// ErrForbidden is what a Patcher's Read returns when the object may be patched, perhaps, but not read.
var ErrForbidden = errors.New("not allowed")

// Patcher is the API as far as a Writer needs it.
type Patcher interface {
	// Read returns an object's content as decoded JSON, or an error that is ErrForbidden.
	Read(ctx context.Context, object Object) (map[string]any, error)
	// Patch writes. It is not repeated within; every error leads to another Read and Diff.
	Patch(ctx context.Context, patch Patch) error
}

// Recorder sends an Event about an object. It does not wait for the API.
type Recorder interface {
	Event(about Object, state State, reason, message string)
}

// Meter keeps gauges.
type Meter interface {
	Set(gauge string, value float64)
	Clear(gauge string)
}

const (
	// defaultSettle is waited for more before a write.
	defaultSettle = 50 * time.Millisecond
	// defaultInterval is the least time between two writes to one object, as in Agones.
	defaultInterval = 500 * time.Millisecond
	// defaultResync is how often it is looked whether somebody else has changed what was written.
	defaultResync = 10 * time.Minute

	firstRetry  = time.Second
	lastRetry   = time.Minute
	callTimeout = 10 * time.Second
	lastWords   = 2 * time.Second
)

// Config of a Writer. Patcher, Recorder and Meter may be nil where no target needs them.
type Config struct {
	Patcher  Patcher
	Recorder Recorder
	Meter    Meter
	Logger   *slog.Logger
	// Written, if set, is told of each attempt to bring an object up to date and how many patches it took.
	Written func(object Object, patches int, err error)
	// Settle, Interval and Resync have defaults; a negative Resync is never.
	Settle, Interval, Resync time.Duration
}

// Writer brings objects to what the latest entries want: on change only, at most one patch for each object,
// subresource and interval, again with growing pauses after a failure. What is wanted in between is left out.
type Writer struct {
	config Config

	mu      sync.Mutex
	sources map[string]*source
	objects map[Object]*object
	puts    int64
	wake    chan struct{} // holds one: a due time has changed
	tried   chan struct{} // closed and replaced after each attempt
}

// source is the origin of entries, and what the last of them wants.
type source struct {
	entry   Entry
	targets []Target
	edits   []Edit
	put     int64 // number of the Put, the later the stronger
}

// object is one object that a source wants something of.
type object struct {
	wanted, attempted int64 // number of the last Put that concerns it, and of the last one acted upon
	err               error // of the last attempt
	due               time.Time
	last              time.Time // last attempt
	retry             time.Duration
	assumed           map[string]any // what we have written, where we may not read
}

// New makes a Writer; it writes while Run runs.
func New(config Config) *Writer {
	pick := func(value *time.Duration, otherwise time.Duration) {
		if *value == 0 {
			*value = otherwise
		}
	}
	pick(&config.Settle, defaultSettle)
	pick(&config.Interval, defaultInterval)
	pick(&config.Resync, defaultResync)
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &Writer{
		config: config, sources: map[string]*source{}, objects: map[Object]*object{},
		wake: make(chan struct{}, 1), tried: make(chan struct{}),
	}
}

// Put says what a source has to tell now and where. It does not wait, and does nothing if the source said the
// same last time. A source's earlier entry counts no more.
func (w *Writer) Put(name string, targets []Target, entry Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, known := w.sources[name]
	if known && before.entry.same(entry) && slices.EqualFunc(before.targets, targets, sameTarget) {
		return
	}
	w.puts++
	now := &source{entry: entry, targets: slices.Clone(targets), put: w.puts}
	w.sources[name] = now
	for _, t := range targets {
		now.edits = append(now.edits, t.edits(entry)...)
		w.tell(t, entry)
	}
	for _, edit := range now.edits {
		o := w.objects[edit.Object]
		if o == nil {
			o = &object{}
			w.objects[edit.Object] = o
		}
		o.wanted = w.puts
		w.schedule(o)
	}
}

// Drop forgets a source. What it has written stays.
func (w *Writer) Drop(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sources, name)
}

// Flush waits until what a source has put last has been written, or returns why it could not be; it is then
// tried again all the same.
func (w *Writer) Flush(ctx context.Context, name string) error {
	for {
		w.mu.Lock()
		done, err := w.settled(name)
		tried := w.tried
		w.mu.Unlock()
		if done {
			return err
		}
		select {
		case <-tried:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *Writer) settled(name string) (bool, error) {
	s := w.sources[name]
	if s == nil {
		return true, nil
	}
	var faults []error
	seen := map[Object]bool{}
	for _, edit := range s.edits {
		o := w.objects[edit.Object]
		if o.attempted < s.put {
			return false, nil
		}
		if !seen[edit.Object] {
			seen[edit.Object] = true
			faults = append(faults, o.err)
		}
	}
	return true, errors.Join(faults...)
}

// schedule plans the next attempt; a pause after a failure is not cut short.
func (w *Writer) schedule(o *object) {
	due := time.Now().Add(w.config.Settle)
	if soonest := o.last.Add(max(w.config.Interval, o.retry)); due.Before(soonest) {
		due = soonest
	}
	if o.due.IsZero() || due.Before(o.due) {
		o.due = due
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// tell passes an entry to the targets that are no part of an object.
func (w *Writer) tell(t Target, e Entry) {
	switch t := t.(type) {
	case Event:
		if w.config.Recorder != nil {
			w.config.Recorder.Event(t.Object, e.State, t.Reason+string(e.State), Cut(e.Message, MaxMessage))
		}
	case Gauge:
		if w.config.Meter != nil {
			setGauge(w.config.Meter, t.Name, e)
		}
	}
}

// Run writes until ctx ends, and once more then.
func (w *Writer) Run(ctx context.Context) error {
	var resync <-chan time.Time
	if w.config.Resync > 0 {
		ticker := time.NewTicker(w.config.Resync + rand.N(w.config.Resync/10+1)) //nolint:gosec // jitter, not a secret
		defer ticker.Stop()
		resync = ticker.C
	}
	for {
		timer := time.NewTimer(w.pause())
		select {
		case <-ctx.Done():
			timer.Stop()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
			defer cancel()
			w.write(last, func(o *object) bool { return !o.due.IsZero() && o.retry == 0 })
			return nil
		case <-resync:
			w.mu.Lock()
			for _, o := range w.objects {
				w.schedule(o)
			}
			w.mu.Unlock()
		case <-w.wake:
		case <-timer.C:
			now := time.Now()
			w.write(ctx, func(o *object) bool { return !o.due.IsZero() && !o.due.After(now) })
		}
		timer.Stop()
	}
}

// pause is how long there is nothing to do.
func (w *Writer) pause() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := time.Now().Add(time.Hour)
	for _, o := range w.objects {
		if !o.due.IsZero() && o.due.Before(next) {
			next = o.due
		}
	}
	return time.Until(next)
}
