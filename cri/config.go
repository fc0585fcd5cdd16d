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

// Config is the configuration of a Client. All fields except Endpoint have defaults.
type Config struct {
	// Endpoint is the runtime's socket: an absolute path, or that path after "unix://". Every connection uses the path, so
	// a socket that is created later or replaced is found.
	Endpoint string
	// CallTimeout bounds calls whose request has no duration.
	CallTimeout time.Duration
	// StopMargin is how long StopContainer may take after the grace period, for SIGKILL, the removal of the container and a
	// busy disk. After that the error is ErrDeadline.
	StopMargin time.Duration
	// ExecMargin is how long ExecSync may take after the command's own timeout.
	ExecMargin time.Duration
	// Logger receives reconnections of the event stream, which no caller is informed of; nil logs nothing.
	Logger *slog.Logger
	// OnCall is called after each call with the CRI method, its duration, and the error that the caller gets. For
	// GetContainerEvents it is called when a subscription ends, and took is the duration of the subscription. It must not
	// block. Optional.
	OnCall func(method string, took time.Duration, err error)
	// Stats observes each call, like OpenTelemetry's handler. Optional.
	Stats stats.Handler
}

// Validate returns all errors at once.
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

// socketPath returns the path of an endpoint in either form.
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
