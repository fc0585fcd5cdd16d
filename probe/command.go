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

// killDelay is how long a killed command's output is waited for.
const killDelay = 100 * time.Millisecond

// Local is the Execer of this program's own container.
type Local struct {
	// Env is the command's whole environment; nil gives it none, since ours may hold secrets.
	Env []string
	// Dir is where the command runs; empty is our own folder.
	Dir string
}

// Exec implements Execer. The command gets a process group of its own, which is killed when ctx is done. A
// child that it left behind may hold its output open; this program does not wait for it: the command's own end counts.
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
		if exit.ExitCode() < 0 { // ended by a signal; the shells' number for it
			end.ExitCode = 128 + int(exit.Sys().(syscall.WaitStatus).Signal()) //nolint:forcetypeassert // Linux
		}
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return end, err
	}
	return end, nil
}

// bounded keeps the first maxBody bytes and takes the rest, so that the writer is neither blocked nor killed.
type bounded struct{ kept []byte }

func (b *bounded) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), maxBody-len(b.kept))]...)
	return len(p), nil
}

func (b *bounded) String() string { return string(b.kept) }
