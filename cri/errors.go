package cri

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Sentinels callers may branch on with errors.Is. An error that wraps none of them is a fault the
// runtime reported in words only.
var (
	// ErrNotFound: the runtime does not know the container or sandbox.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable: no server answers on the socket, or the runtime is going down. Worth trying again.
	ErrUnavailable = errors.New("runtime unavailable")
	// ErrDeadline: no answer in time, or the runtime gave up in time. The effect may have taken place.
	ErrDeadline = errors.New("deadline exceeded")
	// ErrUnsupported: the runtime does not implement the call.
	ErrUnsupported = errors.New("not supported by the runtime")
	// ErrExhausted: the runtime is out of some resource. Worth trying again.
	ErrExhausted = errors.New("resource exhausted")
	// ErrTooLarge: the answer is larger than we accept, or than the runtime sends.
	ErrTooLarge = errors.New("answer too large")
)

// callError names the call and its subject, and translates what gRPC said.
// The text of the runtime is kept, bounded: it is foreign and ends up in conditions and logs.
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
		// gRPC has one code for both, and these words on either side of the connection.
		if strings.Contains(status.Convert(err).Message(), "larger than max") {
			return ErrTooLarge
		}
		return ErrExhausted
	case codes.Canceled:
		// Ours only when our own caller gave up; a runtime that shuts down cancels calls too.
		if ctx.Err() != nil {
			return context.Canceled
		}
		return ErrUnavailable
	default:
		return nil
	}
}

// shortID is the form operators know from crictl and docker.
func shortID(id string) string {
	const most = 13
	if len(id) > most {
		return clip(id[:most])
	}
	return clip(id)
}
