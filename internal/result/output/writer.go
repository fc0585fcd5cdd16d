package output

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/result"
)

// ErrForbidden is returned by a Patcher's Read if the program has no permission to read the object. It may have permission
// to patch it.
var ErrForbidden = errors.New("not allowed")

// Patcher has the calls of the API that a Writer needs.
type Patcher interface {
	// Read returns an object's content as decoded JSON. The error is ErrForbidden without permission.
	Read(ctx context.Context, object Object) (map[string]any, error)
	// Patch writes a patch. It does not retry; after every error Read and Diff are called again.
	Patch(ctx context.Context, patch Patch) error
}

// Recorder sends an Event about an object. It does not wait for the API.
type Recorder interface {
	Event(about Object, state result.State, reason, message string)
}

// Meter keeps gauges.
type Meter interface {
	Set(gauge string, value float64)
	Clear(gauge string)
}

const (
	defaultSettle = 50 * time.Millisecond
	// defaultInterval is the interval of Agones for the labels and annotations of a game server.
	defaultInterval = 500 * time.Millisecond
	defaultResync   = 10 * time.Minute
	defaultFinal    = 2 * time.Second
)

// Config of a Writer. Patcher, Recorder and Meter may be nil if no output needs them.
type Config struct {
	Patcher  Patcher
	Recorder Recorder
	Meter    Meter
	Guard    *guard.Guard // of writes; it may be nil
	Logger   *slog.Logger
	// Observe, if set, is called after each attempt to update an object.
	Observe func(object Object, sent result.Requests, err error)
	// Pace has defaults; a negative Resync turns the resync off.
	Pace result.Pace
}

// Writer updates objects as the latest entries want, with at most one patch for each object, subresource and interval.
// Intermediate values are skipped.
type Writer struct {
	config Config
	engine *result.Writer[Object]

	mu      sync.Mutex
	sources map[string]*source
	puts    int64
	// unread is what was written to objects that may not be read.
	unread map[Object]map[string]any
}

// source is an origin of entries, with its last entry.
type source struct {
	entry   result.Entry
	outputs []Output
	edits   []Edit
	put     int64 // number of the Put; the latest has precedence
}

// New returns a Writer. It writes while Run runs.
func New(config Config) *Writer {
	pace := &config.Pace
	pace.Settle = cmp.Or(pace.Settle, defaultSettle)
	pace.Interval = cmp.Or(pace.Interval, defaultInterval)
	pace.Resync = cmp.Or(pace.Resync, defaultResync)
	pace.Final = cmp.Or(pace.Final, defaultFinal)
	w := &Writer{config: config, sources: map[string]*source{}, unread: map[Object]map[string]any{}}
	w.engine = result.NewWriter(result.Config[Object]{
		Destination: destination{w}, Pace: *pace, Guard: config.Guard, Logger: config.Logger, Observe: config.Observe,
	})
	return w
}

// Put sets what a source wants now and where; it replaces the source's previous entry. It does not wait, and does nothing
// if the entry is the same as before.
func (w *Writer) Put(name string, outputs []Output, entry result.Entry) {
	w.mu.Lock()
	before, known := w.sources[name]
	if known && before.entry.Same(entry) && slices.EqualFunc(before.outputs, outputs, sameOutput) {
		w.mu.Unlock()
		return
	}
	w.puts++
	now := &source{entry: entry, outputs: slices.Clone(outputs), put: w.puts}
	w.sources[name] = now
	for _, o := range outputs {
		now.edits = append(now.edits, o.edits(entry)...)
		w.emit(o, entry)
	}
	w.mu.Unlock()
	for _, object := range now.objects() {
		w.engine.Request(object)
	}
}

// Drop removes a source. What it has written stays.
func (w *Writer) Drop(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sources, name)
}

// Flush waits until a source's last entry has been written, or returns why it could not be. A failed write is still
// retried.
func (w *Writer) Flush(ctx context.Context, name string) error {
	w.mu.Lock()
	var objects []Object
	if s := w.sources[name]; s != nil {
		objects = s.objects()
	}
	w.mu.Unlock()
	return w.engine.Flush(ctx, objects...)
}

// Run writes until ctx ends, and then writes what is left.
func (w *Writer) Run(ctx context.Context) error { return w.engine.Run(ctx) }

// objects returns the objects that the source writes to, each once.
func (s *source) objects() []Object {
	var objects []Object
	for _, edit := range s.edits {
		if !slices.Contains(objects, edit.Object) {
			objects = append(objects, edit.Object)
		}
	}
	return objects
}

// emit passes an entry to the outputs outside of objects.
func (w *Writer) emit(o Output, e result.Entry) {
	switch o := o.(type) {
	case Event:
		if w.config.Recorder != nil {
			w.config.Recorder.Event(o.Object, e.State, o.Reason+string(e.State), foreign.Cut(e.Message, result.MaxMessage))
		}
	case Gauge:
		if w.config.Meter != nil {
			setGauge(w.config.Meter, o.Name, e)
		}
	}
}

func setGauge(meter Meter, name string, e result.Entry) {
	value, err := strconv.ParseFloat(strings.TrimSpace(e.Value), 64)
	if err != nil || e.State != result.Succeeded {
		meter.Clear(name)
		return
	}
	meter.Set(name, value)
}

func sameOutput(a, b Output) bool { return reflect.DeepEqual(a, b) }
