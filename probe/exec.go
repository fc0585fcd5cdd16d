package probe

import (
	"context"
	"errors"
	"fmt"
)

// Execer runs a command in the environment of the probed application, until the command ends or ctx is done.
//
// A non-zero exit code is a result. An error says that the command could not be run or did not end. If it wraps
// context.DeadlineExceeded, the command did not end in time. If it wraps ErrNotRun, it says nothing about the probed
// application. Any other error means that the probe could not run because of the application.
type Execer interface {
	Exec(ctx context.Context, command []string) (Execution, error)
}

// Execution is how a command ended.
type Execution struct {
	ExitCode       int
	Stdout, Stderr string
}

// Exec runs Command through Execer. Exit code 0 is success. The result is the standard output.
type Exec struct {
	Execer  Execer
	Command []string
	// JSONPath extracts the result from the output, see CheckJSONPath.
	JSONPath string
}

// Probe implements Prober. The message of a failure is standard error, or standard output if that is empty.
func (e Exec) Probe(ctx context.Context) Outcome {
	end, err := e.Execer.Exec(ctx, e.Command)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return failed("command did not end in time")
	case errors.Is(err, ErrNotRun):
		return Outcome{}
	case err != nil:
		return unknown(err)
	case end.ExitCode == 0:
		return result([]byte(end.Stdout), e.JSONPath)
	}
	said := cleanMessage(end.Stderr)
	if said == "" {
		said = cleanMessage(end.Stdout)
	}
	if said == "" {
		said = fmt.Sprintf("exit code %d", end.ExitCode)
	}
	return Outcome{State: Failed, Message: said}
}
