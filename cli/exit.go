package cli

import (
	"errors"

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
