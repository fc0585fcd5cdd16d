package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/refit-project/refit/inplace/plan"
)

// Exit codes.
const (
	ExitDone    = 0
	ExitFailed  = 1
	ExitRefused = 2   // the change cannot be made in place, or the command line is wrong; nothing has been changed
	ExitTimeout = 124 // as timeout(1)
	// ExitInterrupted is that of a shell's command that was ended by SIGINT.
	ExitInterrupted = 130
)

// ExitCode is that of a command that ended with this error.
func ExitCode(err error) int {
	var refused *plan.RefusedError
	switch {
	case err == nil:
		return ExitDone
	case errors.Is(err, ErrTimeout):
		return ExitTimeout
	case errors.Is(err, ErrInterrupted):
		return ExitInterrupted
	case errors.As(err, &refused), errors.Is(err, ErrUsage), errors.Is(err, ErrRefused):
		return ExitRefused
	default:
		return ExitFailed
	}
}

// Cause is why a command's context has ended: by its own time-out, with the error that was given as the cause, or else by the user.
func Cause(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrTimeout) {
		return cause
	}
	return ErrInterrupted
}

// Ended is the error of a command. One that comes from the end of the command's context is replaced by the reason of that: it is no fault
// of the API server, in whose calls it shows.
func Ended(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ErrTimeout) || errors.Is(err, ErrInterrupted) {
		return err
	}
	if errors.Is(err, ctx.Err()) || Unreachable(err) {
		return Cause(ctx)
	}
	return err
}

// Refused is the error about what the API server does not accept, in the words of the webhook that has refused it. It wraps ErrRefused.
func Refused(err error) error {
	text := err.Error()
	if _, reason, found := strings.Cut(text, " denied the request: "); found && strings.HasPrefix(text, "admission webhook ") {
		text = reason
	}
	return &refusedError{text: fmt.Sprintf("%s: %s", ErrRefused, text), err: err}
}

type refusedError struct {
	text string
	err  error
}

func (e *refusedError) Error() string   { return e.text }
func (e *refusedError) Unwrap() []error { return []error{ErrRefused, e.err} }
