package cri

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/grpc/stats"
)

// Defaults of Config.
const (
	DefaultCallTimeout = 10 * time.Second
	DefaultStopMargin  = 30 * time.Second
	DefaultExecMargin  = 5 * time.Second
)

// Config is what New needs. The zero value of everything but Endpoint means its default.
type Config struct {
	// Endpoint is the runtime's socket: an absolute path, or that path after "unix://".
	// It is dialled by path each time, so a socket that is replaced or comes late is found.
	Endpoint string
	// CallTimeout bounds each call that has no length of its own.
	CallTimeout time.Duration
	// StopMargin is what StopContainer may take beyond the grace period: SIGKILL, tear-down of
	// the container, a busy disk. Past it the answer is ErrDeadline.
	StopMargin time.Duration
	// ExecMargin is what ExecSync may take beyond the command's own timeout.
	ExecMargin time.Duration
	// Logger receives what no caller can be told: reconnections of the event stream. Nil: nothing.
	Logger *slog.Logger
	// OnCall is told of each finished call: the CRI method, how long it took, the error as the
	// caller sees it. For GetContainerEvents it is called when a subscription ends and took is its
	// life. It must not block. Optional.
	OnCall func(method string, took time.Duration, err error)
	// Stats sees each call, as OpenTelemetry's handler does. Optional.
	Stats stats.Handler
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	_, err := socketPath(c.Endpoint)
	errs := []error{err}
	for name, d := range map[string]time.Duration{
		"call timeout": c.CallTimeout, "stop margin": c.StopMargin, "exec margin": c.ExecMargin,
	} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s %s: must not be negative", name, d))
		}
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.CallTimeout == 0 {
		c.CallTimeout = DefaultCallTimeout
	}
	if c.StopMargin == 0 {
		c.StopMargin = DefaultStopMargin
	}
	if c.ExecMargin == 0 {
		c.ExecMargin = DefaultExecMargin
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.OnCall == nil {
		c.OnCall = func(string, time.Duration, error) {}
	}
	return c
}

// socketPath takes the two spellings of an endpoint apart.
func socketPath(endpoint string) (string, error) {
	path := strings.TrimPrefix(endpoint, "unix://")
	switch {
	case endpoint == "":
		return "", errors.New("endpoint: must not be empty")
	case !strings.HasPrefix(path, "/"):
		return "", fmt.Errorf("endpoint %q: want an absolute path or unix:///path", clip(endpoint))
	case strings.ContainsRune(path, 0):
		return "", fmt.Errorf("endpoint %q: must not hold a zero byte", clip(endpoint))
	}
	return path, nil
}
