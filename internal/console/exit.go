package console

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/refit-project/refit/internal/foreign"
)

// Exit codes.
const (
	ExitDone    = 0
	ExitFailed  = 1
	ExitRefused = 2   // the change cannot be made in place, a right is missing, or the command line is wrong; nothing has been changed
	ExitTimeout = 124 // like timeout(1)
	// ExitInterrupted is the exit code of a command that SIGINT has ended in a shell.
	ExitInterrupted = 130
)

// refusal is the error of a change that is not possible: [plan.RefusedError] of in-place updates.
type refusal interface {
	error
	Refused()
}

// ExitCode returns the exit code for the error of a command.
func ExitCode(err error) int {
	var refused refusal
	var begun *begunError
	switch {
	case err == nil:
		return ExitDone
	case errors.Is(err, ErrTimeout):
		return ExitTimeout
	case errors.Is(err, ErrInterrupted):
		return ExitInterrupted
	case errors.As(err, &begun):
		return ExitFailed
	case errors.As(err, &refused), errors.Is(err, ErrUsage), errors.Is(err, ErrRefused), apierrors.IsForbidden(err):
		return ExitRefused
	default:
		return ExitFailed
	}
}

// Begun marks an error of a command that has changed something before it: the exit code [ExitRefused] would say the contrary.
func Begun(err error) error {
	if ExitCode(err) != ExitRefused {
		return err
	}
	return &begunError{err}
}

type begunError struct{ err error }

func (e *begunError) Error() string { return e.err.Error() }
func (e *begunError) Unwrap() error { return e.err }

// Message returns the text of an error for the user. In wrong usage it says what is wrong, without the word for all of these errors.
func Message(err error) string { return strings.TrimPrefix(err.Error(), ErrUsage.Error()+": ") }

// Line returns the line with which a command ends that has failed. It begins as kubectl's. Errors may have text of others, so it has no
// control characters, except line breaks and tabs.
func Line(err error) string {
	if ExitCode(err) == ExitFailed && apierrors.IsNotFound(err) {
		return foreign.PrintableLines("Error from server (NotFound): " + err.Error())
	}
	return foreign.PrintableLines("error: " + Message(err))
}

// Cause returns why a command's context has ended: its own timeout with the error given as the cause, or else the user.
func Cause(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrTimeout) {
		return cause
	}
	return ErrInterrupted
}

// Ended returns the error of a command. An error caused by the end of the command's context is replaced by the reason of
// that end, because it is no fault of the API server whose call returned it.
func Ended(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ErrTimeout) || errors.Is(err, ErrInterrupted) {
		return err
	}
	if errors.Is(err, ctx.Err()) || Unreachable(err) {
		return Cause(ctx)
	}
	return err
}

// Refused returns the error for what the API server does not accept, with the message of the webhook that has refused it.
// It wraps ErrRefused.
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
