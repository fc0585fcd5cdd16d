package criproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/refit-project/refit/internal/wait"
)

// Fault is what goes wrong with a method. The faults file is one JSON object of them by method name,
// for example {"StopContainer": {"delay": "2s", "count": 3}}; "*" stands for every method without
// an entry of its own. What is set applies in the order delay, hang, code.
type Fault struct {
	Delay Duration `json:"delay,omitempty"`
	Hang  bool     `json:"hang,omitempty"` // until the caller gives up
	// Code is answered in place of the truth, by name: "Unavailable".
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// After lets the call reach the runtime first: only the answer is late or lost.
	After bool `json:"after,omitempty"`
	// Drop loses single messages of a stream, as events; nothing else then applies.
	Drop bool `json:"drop,omitempty"`
	// Probability is how many of the calls (with Drop: messages) are struck, 0 to 1; absent: all.
	Probability *float64 `json:"probability,omitempty"`
	// Count is how many are struck at most, counted from zero when the file changes; absent: no limit.
	Count *int `json:"count,omitempty"`
}

// Duration is a time.Duration in its text form.
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	if parsed < 0 {
		return fmt.Errorf("duration %s: must not be negative", parsed)
	}
	*d = Duration(parsed)
	return nil
}

// Code is a gRPC code by its name.
type Code codes.Code

// MarshalText implements encoding.TextMarshaler.
func (c Code) MarshalText() ([]byte, error) { return []byte(codes.Code(c).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Code) UnmarshalText(text []byte) error {
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		if strings.EqualFold(code.String(), string(text)) {
			*c = Code(code)
			return nil
		}
	}
	return fmt.Errorf("code %q: not a gRPC code such as Unavailable or DeadlineExceeded", text)
}

// ParseFaults reads a faults file's contents. What it does not know it refuses: a misspelt fault
// would make a test pass.
func ParseFaults(b []byte) (map[string]Fault, error) {
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.DisallowUnknownFields()
	var parsed map[string]Fault
	if err := decoder.Decode(&parsed); err != nil {
		return nil, fmt.Errorf("parse faults: %w", err)
	}
	if decoder.More() {
		return nil, errors.New("parse faults: more than one JSON value")
	}
	for method, f := range parsed {
		if f.Probability != nil && (*f.Probability < 0 || *f.Probability > 1) {
			return nil, fmt.Errorf("parse faults: %s: probability %v: want 0 to 1", method, *f.Probability)
		}
		if f.Count != nil && *f.Count < 0 {
			return nil, fmt.Errorf("parse faults: %s: count %d: must not be negative", method, *f.Count)
		}
	}
	return parsed, nil
}

// faults is the file, as it was when it was last readable.
type faults struct {
	name   string
	logger *slog.Logger

	mu       sync.Mutex
	modified time.Time
	size     int64
	current  map[string]Fault
}

func newFaults(name string, logger *slog.Logger) *faults { return &faults{name: name, logger: logger} }

// strike is the fault of one call; the zero Fault does nothing.
func (f *faults) strike(method string) Fault { return f.take(method, false) }

// drops says whether one message of a stream is lost.
func (f *faults) drops(method string) bool { return f.take(method, true).Drop }

func (f *faults) take(method string, drop bool) Fault {
	if f.name == "" {
		return Fault{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reload()
	fault, ok := f.current[method]
	if !ok {
		method = "*"
		fault = f.current[method]
	}
	if fault.Drop != drop {
		return Fault{}
	}
	if fault.Probability != nil && rand.Float64() >= *fault.Probability {
		return Fault{}
	}
	if fault.Count != nil {
		if *fault.Count == 0 {
			return Fault{}
		}
		left := *fault.Count - 1
		rest := fault
		rest.Count = &left
		f.current[method] = rest
	}
	return fault
}

// reload looks at the file before each call, which is cheap beside the call. A file that is half
// written or wrong leaves the faults as they were.
func (f *faults) reload() {
	info, err := os.Stat(f.name)
	if errors.Is(err, fs.ErrNotExist) {
		f.current, f.modified, f.size = nil, time.Time{}, 0
		return
	}
	if err != nil {
		f.logger.Error("read faults", "err", err)
		return
	}
	if info.ModTime().Equal(f.modified) && info.Size() == f.size {
		return
	}
	b, err := os.ReadFile(f.name)
	if err != nil {
		f.logger.Error("read faults", "err", err)
		return
	}
	parsed, err := ParseFaults(b)
	if err != nil {
		f.logger.Error("faults unchanged", "err", err)
		return
	}
	f.current, f.modified, f.size = parsed, info.ModTime(), info.Size()
	f.logger.Info("faults read", "methods", len(parsed))
}

func (f Fault) apply(ctx context.Context) error {
	if f.Delay > 0 {
		if err := wait.For(ctx, time.Duration(f.Delay)); err != nil {
			return status.FromContextError(err).Err()
		}
	}
	if f.Hang {
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	if f.Code != Code(codes.OK) {
		return status.Error(codes.Code(f.Code), f.Message)
	}
	return nil
}
