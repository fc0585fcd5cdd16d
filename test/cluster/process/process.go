package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	poll = 20 * time.Millisecond
	// killAfter is how long a program has to obey SIGTERM.
	killAfter = 10 * time.Second
)

// Spec is a program to start.
type Spec struct {
	// Record is the file that remembers the process, Log the one its output is appended to.
	Record, Log string
	// Starter is the program that enters the namespaces: this one, at a path that stays.
	Starter string
	Where   Namespaces
	// Argv starts with the path of the program.
	Argv []string
	// Env is added to this process's own environment.
	Env []string
}

// Start starts the program unless its record names a living process. It returns as soon as the process exists.
func Start(spec Spec) (Record, error) {
	if record, alive := Alive(spec.Record); alive {
		return record, nil
	}
	argv := append([]string{spec.Starter, "exec"}, spec.Where.flags()...)
	argv = append(append(argv, "--"), spec.Argv...)
	return Spawn(spec, argv, nil, nil)
}

// Spawn starts argv detached from this process and remembers it. extra becomes file descriptor 3.
func Spawn(spec Spec, argv []string, extra *os.File, attributes *syscall.SysProcAttr) (Record, error) {
	for _, path := range []string{spec.Log, spec.Record} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return Record{}, fmt.Errorf("start %s: %w", spec.Argv[0], err)
		}
	}
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return Record{}, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	defer log.Close()
	command := exec.Command(argv[0], argv[1:]...)
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
		return Record{}, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	record, err := recordOf(command.Process.Pid)
	if err == nil {
		err = record.write(spec.Record)
	}
	if err != nil {
		_ = command.Process.Kill()
		_ = command.Wait()
		return Record{}, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	// Collects the child should it end while this program still runs; it is nobody's zombie afterwards.
	go func() { _ = command.Wait() }()
	return record, nil
}

// Stop ends the process with SIGTERM, after ten seconds with SIGKILL, or with SIGKILL at once.
// It returns when the process is gone; none to stop is fine.
func Stop(ctx context.Context, path string, kill bool) error {
	record, alive := Alive(path)
	if !alive {
		return forget(path)
	}
	signal := syscall.SIGTERM
	if kill {
		signal = syscall.SIGKILL
	}
	if err := record.signal(signal); err != nil {
		return err
	}
	// A suspended process does not see SIGTERM before it goes on.
	if err := record.signal(syscall.SIGCONT); err != nil {
		return err
	}
	gone, err := record.wait(ctx, killAfter)
	if err != nil {
		return err
	}
	if !gone {
		if err := record.signal(syscall.SIGKILL); err != nil {
			return err
		}
		if gone, err = record.wait(ctx, killAfter); err != nil {
			return err
		}
		if !gone {
			return fmt.Errorf("process %d survives SIGKILL", record.PID)
		}
	}
	return forget(path)
}

// Signal sends a signal to the process, which must be alive.
func Signal(path string, signal syscall.Signal) error {
	record, alive := Alive(path)
	if !alive {
		return fmt.Errorf("%s is not running", strings.TrimSuffix(filepath.Base(path), ".json"))
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

func (r Record) wait(ctx context.Context, limit time.Duration) (gone bool, err error) {
	err = Until(ctx, limit, func() bool { return !r.Alive() })
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
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
