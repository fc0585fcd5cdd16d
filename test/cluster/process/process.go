package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	poll = 20 * time.Millisecond
	// stopTimeout is how long a supervisor may take to end its program and itself.
	stopTimeout = 2 * killAfter
)

// Spec is a program to start.
type Spec struct {
	// Record is the file that remembers the supervisor, Log the one all output is appended to.
	Record, Log string
	// Starter is the program that enters the namespaces: this one, at a path that stays.
	Starter string
	Where   Namespaces
	// Argv starts with the path of the program.
	Argv []string
	// Env is added to this process's own environment.
	Env []string
}

// Start starts the program under a supervisor unless there is one. It returns as soon as that exists.
func Start(ctx context.Context, spec Spec) error {
	if _, alive := Alive(spec.Record); alive {
		return nil
	}
	argv := append([]string{spec.Starter, "exec"}, spec.Where.flags()...)
	argv = append(argv, "--", spec.Starter, "supervise", "--record="+spec.Record, "--")
	return Spawn(ctx, spec, append(argv, spec.Argv...), nil, nil)
}

// Spawn starts argv detached from this process and remembers it. extra becomes file descriptor 3.
func Spawn(ctx context.Context, spec Spec, argv []string, extra *os.File, attributes *syscall.SysProcAttr) error {
	for _, path := range []string{spec.Log, spec.Record} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("start %s: %w", spec.Argv[0], err)
		}
	}
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	defer func() { _ = log.Close() }()
	// It outlives this program and with it every context there is here.
	command := exec.CommandContext(context.WithoutCancel(ctx), argv[0], argv[1:]...)
	command.Stdout, command.Stderr = log, log
	command.Dir = "/"
	command.Env = append(os.Environ(), spec.Env...)
	if attributes == nil {
		attributes = &syscall.SysProcAttr{}
	}
	attributes.Setsid = true
	command.SysProcAttr = attributes
	if extra != nil {
		command.ExtraFiles = []*os.File{extra}
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	record, err := recordOf(command.Process.Pid)
	if err == nil {
		err = record.write(spec.Record)
	}
	if err != nil {
		_ = command.Process.Kill()
		_ = command.Wait()
		return fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	// Collects the child should it end while this program still runs; it is nobody's zombie afterwards.
	go func() { _ = command.Wait() }()
	return nil
}

// Stop ends a supervisor and its program: with SIGTERM and, if need be, SIGKILL five seconds later, or with
// SIGKILL at once. It returns when both are gone; none to stop is fine.
func Stop(ctx context.Context, path string, kill bool) error {
	if record, alive := Alive(path); alive {
		signal := syscall.SIGTERM
		if kill {
			signal = syscall.SIGKILL
		}
		if err := record.end(ctx, signal); err != nil {
			return err
		}
	}
	// It has gone with its supervisor, unless that was killed before it was told so.
	if record, alive := Main(path); alive {
		if err := record.end(ctx, syscall.SIGKILL); err != nil {
			return err
		}
	}
	return errors.Join(forget(mainRecord(path)), forget(path))
}

// end sends a signal and waits until the process is gone.
func (r Record) end(ctx context.Context, signal syscall.Signal) error {
	if err := r.signal(signal); err != nil {
		return err
	}
	err := Until(ctx, stopTimeout, func() bool { return !r.Alive() })
	if err == nil || ctx.Err() != nil || signal == syscall.SIGKILL {
		return err
	}
	return r.end(ctx, syscall.SIGKILL)
}

// Signal sends a signal to the program, which must be alive; its supervisor gets none.
func Signal(path string, signal syscall.Signal) error {
	record, alive := Main(path)
	if !alive {
		return errors.New("not running")
	}
	return record.signal(signal)
}

func (r Record) signal(signal syscall.Signal) error {
	err := syscall.Kill(r.PID, signal)
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal process %d: %w", r.PID, err)
	}
	return nil
}

// Until waits for the condition, looking often. It returns context.DeadlineExceeded after limit.
func Until(ctx context.Context, limit time.Duration, condition func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}
