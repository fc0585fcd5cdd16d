// Package fakenodes is what benchmarks with thousands of pods share: nodes and kubelets that kwok simulates, refit-manager as
// a process of its own on this machine, and what each step of a benchmark costs it.
package fakenodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Process is a program that runs as long as the benchmark.
type Process struct {
	command *exec.Cmd
	log     *os.File
	ended   chan struct{} // closed when it has ended
}

// Start starts a program with more variables of the environment than this one has. Its output goes to a temporary file.
func Start(ctx context.Context, env []string, program string, args ...string) (*Process, error) {
	log, err := os.CreateTemp("", filepath.Base(program)+"-*.log")
	if err != nil {
		return nil, err
	}
	c := &Process{command: exec.CommandContext(ctx, program, args...), log: log, ended: make(chan struct{})}
	c.command.Stdout, c.command.Stderr = log, log
	c.command.Env = append(os.Environ(), env...)
	c.command.Cancel = func() error { return c.command.Process.Signal(syscall.SIGTERM) }
	c.command.WaitDelay = 10 * time.Second
	if err := c.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(program), err)
	}
	go func() {
		_ = c.command.Wait() // its log says why
		close(c.ended)
	}()
	return c, nil
}

// Stop ends it and removes its log.
func (p *Process) Stop() {
	if p.command.Process.Signal(syscall.SIGTERM) == nil {
		select {
		case <-p.ended:
		case <-time.After(10 * time.Second):
			_ = p.command.Process.Kill()
			<-p.ended
		}
	}
	_ = p.log.Close()
	_ = os.Remove(p.log.Name())
}

// Alive returns an error when it has ended.
func (p *Process) Alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s has ended: %w", filepath.Base(p.command.Path), p.Tail())
	default:
		return nil
	}
}

// Tail is the end of its log, as an error.
func (p *Process) Tail() error {
	content, err := os.ReadFile(p.log.Name())
	if err != nil {
		return err
	}
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return errors.New(string(bytes.Join(lines[max(0, len(lines)-20):], []byte("\n"))))
}
