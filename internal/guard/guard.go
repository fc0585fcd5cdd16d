// Package guard runs code that handles one object, so that a fault of that code affects only this object: a panic becomes
// an error that is counted, logged with its stack and reported on the object. The caller decides what follows for the
// object. What cannot be recovered, such as a stack overflow or a lack of memory, has to be prevented where text enters, by
// package foreign.
package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/refit-project/refit/internal/foreign"
)

// Kinds of faults, the values of the metric's label.
const (
	faultPanic    = "panic"
	faultDeadline = "deadline"
)

const (
	maxValue = 512  // bytes of the value of a panic
	maxStack = 8192 // bytes of a stack
	// maxReported is how many reported objects are remembered. Beyond it all are forgotten, so that an object may be reported
	// again.
	maxReported = 1024
)

// ErrDeadline is wrapped by the error of code that has not ended in time.
var ErrDeadline = errors.New("not finished in time")

// PanicError is a recovered panic.
type PanicError struct {
	Value string // at most maxValue bytes
	Stack string // at most maxStack bytes
}

func (e *PanicError) Error() string { return "panic: " + e.Value }

// Is reports whether an error is a fault of code that handles an object: a panic or a deadline.
func Is(err error) bool {
	var panicked *PanicError
	return errors.As(err, &panicked) || errors.Is(err, ErrDeadline)
}

// Config of a Guard.
type Config struct {
	Program string // such as refit-manager, for messages
	// Faults counts by the labels where, and fault: panic or deadline.
	Faults *prometheus.CounterVec
	// Places have the value 0 from the start, because Prometheus sees no increase in the first sample of a counter.
	Places []string
	Logger *slog.Logger
	// Report reports a fault on its object, for example by an Event; nil for a program that cannot. It is called once for
	// each object and place while that is remembered, and not for an object without a UID.
	Report func(object Object, message string)
}

// Guard counts and reports faults. A nil *Guard recovers panics too, but only the caller learns of them.
type Guard struct {
	config Config

	mu       sync.Mutex
	reported map[reportKey]bool
}

type reportKey struct {
	where  string
	object Object
}

// New returns a Guard.
func New(config Config) *Guard {
	for _, where := range config.Places {
		config.Faults.WithLabelValues(where, faultPanic)
		config.Faults.WithLabelValues(where, faultDeadline)
	}
	return &Guard{config: config, reported: map[reportKey]bool{}}
}

// Do calls do, which handles the object, and returns its error, or a *PanicError after a panic. where names the code in one
// or two words: it is a label of the metric.
func (g *Guard) Do(where string, object Subject, do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			panicked := &PanicError{Value: foreign.Cut(fmt.Sprint(r), maxValue), Stack: foreign.Cut(string(debug.Stack()), maxStack)}
			err = panicked
			g.report(where, faultPanic, object, panicked)
		}
	}()
	return do()
}

// Try is Do for code that returns no error. It reports whether the code has returned without a panic.
func (g *Guard) Try(where string, object Subject, do func()) bool {
	return g.Do(where, object, func() error { do(); return nil }) == nil
}

// Within is Do for code that cannot be cancelled: it runs in a goroutine of slots, and Within waits for it until ctx ends.
// Later results are dropped, and the error is ErrDeadline then.
func Within[T any](ctx context.Context, g *Guard, slots *Slots, where string, object Subject, do func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	var none T
	begun := slots.run(ctx, func() {
		var a answer
		a.err = g.Do(where, object, func() (err error) {
			a.value, err = do()
			return err
		})
		answers <- a
	})
	if begun {
		select {
		case a := <-answers:
			return a.value, a.err
		case <-ctx.Done():
		}
	}
	err := fmt.Errorf("%w: %w", ErrDeadline, context.Cause(ctx))
	g.report(where, faultDeadline, object, err)
	return none, err
}

// report counts a fault, and reports it on the object if it is new.
func (g *Guard) report(where, fault string, subject Subject, err error) {
	if g == nil {
		return
	}
	g.config.Faults.WithLabelValues(where, fault).Inc()
	object := subject.name()
	if !g.isNew(reportKey{where, object}) {
		return
	}
	attributes := []any{"where", where, "object", object.String(), "err", err}
	if panicked := (*PanicError)(nil); errors.As(err, &panicked) {
		attributes = append(attributes, "stack", panicked.Stack)
	}
	g.config.Logger.Error("an object cannot be handled, others are", attributes...)
	if g.config.Report != nil && object.UID != "" {
		g.config.Report(object, fmt.Sprintf("%s cannot handle this object (%s): %v", g.config.Program, where, err))
	}
}

func (g *Guard) isNew(key reportKey) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reported[key] {
		return false
	}
	if len(g.reported) >= maxReported {
		clear(g.reported)
	}
	g.reported[key] = true
	return true
}
