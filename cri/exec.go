package cri

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// maxExecOutput is how much of each stream is kept. Both are written to conditions and events, which are smaller still.
	maxExecOutput = 16 << 10
	// maxExecMessage is the maximum size of the response. Runtimes collect up to 16 MiB of each stream in memory and send
	// it as one message; the daemon's memory limit is lower.
	maxExecMessage = 1 << 20
)

// ExecResult is the result of a command in a container.
type ExecResult struct {
	// Stdout and Stderr are the first 16 KiB of the output, as valid UTF-8.
	Stdout, Stderr string
	// Truncated reports whether there was more output.
	Truncated bool
	// ExitCode is 0 for success. For a command that a signal has ended it is 128 + signal.
	ExitCode int32
}

// ExecSync runs cmd in a container and waits until it exits. A non-zero exit code is a result, not an error.
//
// The runtime kills the command after timeout, rounded up to whole seconds, and the error is ErrDeadline then. timeout must
// be positive. If the runtime does not respond in time, for example because a child process of the command keeps its output
// open, the call ends with ErrDeadline after timeout + Config.ExecMargin. ErrTooLarge means that the command has ended but
// wrote more than 1 MiB; its exit code is lost.
func (c *Client) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (ExecResult, error) {
	if timeout <= 0 {
		return ExecResult{}, fmt.Errorf("ExecSync %s: timeout %s: must be positive", shortID(id), timeout)
	}
	if len(cmd) == 0 {
		return ExecResult{}, fmt.Errorf("ExecSync %s: no command", shortID(id))
	}
	if err := c.exact(ctx, id); err != nil {
		return ExecResult{}, err
	}
	res, err := c.runtime.ExecSync(ctx, &runtimeapi.ExecSyncRequest{
		ContainerId: id, Cmd: cmd, Timeout: wholeSeconds(timeout),
	}, grpc.MaxCallRecvMsgSize(maxExecMessage))
	if errors.Is(err, ErrTooLarge) {
		return ExecResult{}, fmt.Errorf("output over %d bytes: %w", maxExecMessage, err)
	}
	if err != nil {
		return ExecResult{}, err
	}
	return execResult(res), nil
}

func execResult(res *runtimeapi.ExecSyncResponse) ExecResult {
	stdout, cutOut := bounded(res.GetStdout(), maxExecOutput)
	stderr, cutErr := bounded(res.GetStderr(), maxExecOutput)
	return ExecResult{Stdout: stdout, Stderr: stderr, Truncated: cutOut || cutErr, ExitCode: res.GetExitCode()}
}
