package cli

import (
	"errors"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Errors of a command, for the exit code.
var (
	// ErrUsage is wrapped by errors about what the user typed.
	ErrUsage = errors.New("usage")
	// ErrFailed: the update cannot go on by itself.
	ErrFailed = errors.New("the update failed")
	// ErrRefused: the API server does not allow it; nothing has been changed.
	ErrRefused = errors.New("refused")
	// ErrInterrupted: the user has ended the command.
	ErrInterrupted = errors.New("interrupted")
	// ErrTimeout: it was not done in time. It goes on where it is when the command is run again.
	ErrTimeout = errors.New("not done in time")
)

// Unreachable reports whether the API server may answer something else in a while.
func Unreachable(err error) bool {
	var network net.Error
	return errors.As(err, &network) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsInternalError(err)
}
