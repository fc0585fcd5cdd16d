package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// killDelay is how long to wait for the output of a command after it was killed.
const killDelay = 100 * time.Millisecond

// Local is an Execer that runs commands in the container of this program.
type Local struct {
	// Env is the whole environment of the command. Nil means an empty one, because the environment of this program may
	// hold secrets.
	Env []string
	// Dir is the working directory of the command; empty means the directory of this program.
	Dir string
}

// Exec implements Execer. It starts the command in a new process group and kills the group when ctx is done. A child
// process may hold the output open after the command has ended; Exec does not wait for it.
func (l Local) Exec(ctx context.Context, command []string) (Execution, error) {
	if len(command) == 0 {
		return Execution{}, errors.New("no command")
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append([]string{}, l.Env...)
	cmd.Dir = l.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
			return err
		}
		return os.ErrProcessDone
	}
	cmd.WaitDelay = killDelay
	stdout, stderr := &bounded{}, &bounded{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err := cmd.Run()
	end := Execution{Stdout: stdout.String(), Stderr: stderr.String()}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return end, fmt.Errorf("run %s: %w", command[0], ctx.Err())
	case errors.As(err, &exit):
		end.ExitCode = exit.ExitCode()
		if exit.ExitCode() < 0 { // ended by a signal; use the exit code that shells use
			end.ExitCode = 128 + int(exit.Sys().(syscall.WaitStatus).Signal()) //nolint:forcetypeassert // Linux
		}
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return end, err
	}
	return end, nil
}

// bounded keeps the first maxBody bytes and discards the rest, so that the writer is neither blocked nor killed.
type bounded struct{ kept []byte }

func (b *bounded) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), maxBody-len(b.kept))]...)
	return len(p), nil
}

func (b *bounded) String() string { return string(b.kept) }
