package console

import (
	"errors"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Errors of a command, for the exit code.
var (
	// ErrUsage is wrapped by errors in what the user typed.
	ErrUsage = errors.New("usage")
	// ErrFailed means that the update cannot continue by itself.
	ErrFailed = errors.New("the update failed")
	// ErrRefused means that the API server has refused a request. Nothing has been changed.
	ErrRefused = errors.New("refused")
	// ErrInterrupted means that the user has ended the command.
	ErrInterrupted = errors.New("interrupted")
	// ErrTimeout means that the command did not finish in time. The same command continues when it is run again.
	ErrTimeout = errors.New("not done in time")
)

// Unreachable reports whether a later call of the API server may succeed.
func Unreachable(err error) bool {
	var network net.Error
	return errors.As(err, &network) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsInternalError(err)
}
