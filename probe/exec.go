package probe

import (
	"context"
	"errors"
	"fmt"
)

// Execer runs a command where the thing probed lives, until its end or until ctx is done.
//
// A non-zero exit is a result. An error says that the command could not be run or did not end: one that is
// context.DeadlineExceeded means not in time, one that is ErrNotRun says nothing about the thing probed, any other means
// that the probe could not run because of it.
type Execer interface {
	Exec(ctx context.Context, command []string) (Execution, error)
}

// Execution is how a command ended.
type Execution struct {
	ExitCode       int
	Stdout, Stderr string
}

// Exec runs Command through Execer; exit 0 is success. The result is its standard output.
type Exec struct {
	Execer  Execer
	Command []string
	// JSONPath takes the result out of the output, see CheckJSONPath.
	JSONPath string
}

// Probe implements Prober. The message of a failure is standard error, or else standard output.
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
	said := tidy(end.Stderr)
	if said == "" {
		said = tidy(end.Stdout)
	}
	if said == "" {
		said = fmt.Sprintf("exit code %d", end.ExitCode)
	}
	return Outcome{State: Failed, Message: said}
}
