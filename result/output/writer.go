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

	"github.com/refit-project/refit/foreign"
	"github.com/refit-project/refit/result"
)

// ErrForbidden is what a Patcher's Read returns when the program has no right to read the object. It may be able to
// patch it.
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
	Event(about Object, state result.State, reason, message string)
}

// Meter keeps gauges.
type Meter interface {
	Set(gauge string, value float64)
	Clear(gauge string)
}

const (
	defaultSettle = 50 * time.Millisecond
	// defaultInterval is that of Agones for the labels and annotations of a game server.
	defaultInterval = 500 * time.Millisecond
	defaultResync   = 10 * time.Minute
	defaultFinal    = 2 * time.Second
)

// Config of a Writer. Patcher, Recorder and Meter may be nil where no output needs them.
type Config struct {
	Patcher  Patcher
	Recorder Recorder
	Meter    Meter
	Logger   *slog.Logger
	// Observe, if set, is called after each attempt to bring an object up to date.
	Observe func(object Object, sent result.Requests, err error)
	// Pace has defaults; a negative Resync is never.
	Pace result.Pace
}

// Writer brings objects to what the latest entries want, with at most one patch for each object, subresource and
// interval. What is wanted only in between is left out.
type Writer struct {
	config Config
	engine *result.Writer[Object]

	mu      sync.Mutex
	sources map[string]*source
	puts    int64
	// unread is what was written to the objects that may not be read.
	unread map[Object]map[string]any
}

// source is the origin of entries, and what the last of them wants.
type source struct {
	entry   result.Entry
	outputs []Output
	edits   []Edit
	put     int64 // number of the Put; the latest has precedence
}

// New makes a Writer; it writes while Run runs.
func New(config Config) *Writer {
	pace := &config.Pace
	pace.Settle = cmp.Or(pace.Settle, defaultSettle)
	pace.Interval = cmp.Or(pace.Interval, defaultInterval)
	pace.Resync = cmp.Or(pace.Resync, defaultResync)
	pace.Final = cmp.Or(pace.Final, defaultFinal)
	w := &Writer{config: config, sources: map[string]*source{}, unread: map[Object]map[string]any{}}
	w.engine = result.NewWriter(result.Config[Object]{
		Destination: destination{w}, Pace: *pace, Logger: config.Logger, Observe: config.Observe,
	})
	return w
}

// Put sets what a source wants now and where. It does not wait, and does nothing if the source has put the same last
// time. The source's earlier entry is dropped.
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

// Drop forgets a source. What it has written stays.
func (w *Writer) Drop(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sources, name)
}

// Flush waits until what a source has put last has been written, or returns why it could not be; it is then
// retried nevertheless.
func (w *Writer) Flush(ctx context.Context, name string) error {
	w.mu.Lock()
	var objects []Object
	if s := w.sources[name]; s != nil {
		objects = s.objects()
	}
	w.mu.Unlock()
	return w.engine.Flush(ctx, objects...)
}

// Run writes until ctx ends, and what is left after that.
func (w *Writer) Run(ctx context.Context) error { return w.engine.Run(ctx) }

// objects are those that the source wants something of, each once.
func (s *source) objects() []Object {
	var objects []Object
	for _, edit := range s.edits {
		if !slices.Contains(objects, edit.Object) {
			objects = append(objects, edit.Object)
		}
	}
	return objects
}

// emit passes an entry to the outputs that are no part of an object.
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
