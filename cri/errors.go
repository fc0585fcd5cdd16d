package cri

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/refit-project/refit/internal/foreign"
)

// Errors that callers may check with errors.Is. An error that wraps none of them has only the message of the runtime.
var (
	// ErrNotFound means that the runtime does not know the container or sandbox.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable means that no server responds on the socket, or that the runtime is shutting down. A retry may
	// succeed.
	ErrUnavailable = errors.New("runtime unavailable")
	// ErrDeadline means that there was no response in time, or that the runtime reported a timeout. The call may have had
	// its effect.
	ErrDeadline = errors.New("deadline exceeded")
	// ErrUnsupported means that the runtime does not implement the call.
	ErrUnsupported = errors.New("not supported by the runtime")
	// ErrExhausted means that the runtime lacks some resource. A retry may succeed.
	ErrExhausted = errors.New("resource exhausted")
	// ErrTooLarge means that the response is larger than we accept, or than the runtime sends.
	ErrTooLarge = errors.New("answer too large")
)

// callError adds the call and its subject, and translates the gRPC error. It keeps the runtime's text, bounded, because it
// ends up in conditions and logs.
func callError(ctx context.Context, method, subject string, err error) error {
	if err == nil {
		return nil
	}
	name := method
	if subject != "" {
		name += " " + shortID(subject)
	}
	text := clip(status.Convert(err).Message())
	if sentinel := sentinelOf(ctx, err); sentinel != nil {
		return fmt.Errorf("%s: %w: %s", name, sentinel, text)
	}
	return fmt.Errorf("%s: %s: %s", name, status.Code(err), text)
}

func sentinelOf(ctx context.Context, err error) error {
	switch status.Code(err) {
	case codes.NotFound:
		return ErrNotFound
	case codes.Unavailable:
		return ErrUnavailable
	case codes.DeadlineExceeded:
		return ErrDeadline
	case codes.Unimplemented:
		return ErrUnsupported
	case codes.ResourceExhausted:
		// gRPC has one code for both, and this text on either side of the connection.
		if strings.Contains(status.Convert(err).Message(), "larger than max") {
			return ErrTooLarge
		}
		return ErrExhausted
	case codes.Canceled:
		// Only if our own caller has cancelled; a runtime that shuts down cancels calls too.
		if ctx.Err() != nil {
			return context.Canceled
		}
		return ErrUnavailable
	default:
		return nil
	}
}

// shortID returns the short form of an ID, as in crictl and docker.
func shortID(id string) string {
	const most = 13
	return foreign.Cut(id, most)
}
