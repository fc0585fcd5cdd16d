package signal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/refit-project/refit/signal/procfile"
)

// capKill is CAP_KILL of capabilities(7).
const capKill = 5

// Signal finds the processes selected by sel and sends sig, once per process. Each process is compared with sel again when
// a pidfd holds it, so a process that has renamed itself or ended in between is not signalled.
//
// It returns the processes that were signalled, also with an error. With the choice All, processes that have ended in
// between are skipped as long as one remains.
func (f *FS) Signal(ctx context.Context, sel Selector, sig syscall.Signal) ([]Process, error) {
	m, err := sel.compile()
	if err != nil {
		return nil, err
	}
	found, err := f.find(ctx, m)
	if err != nil {
		return nil, err
	}
	var sent []Process
	var errs []error
	for _, p := range found {
		err := f.send(p, sig, m)
		switch {
		case err == nil:
			sent = append(sent, p)
		case m.Choice != All || !errors.Is(err, ErrGone):
			errs = append(errs, err)
		}
	}
	if len(sent) == 0 && len(errs) == 0 {
		return nil, fmt.Errorf("signal %s to %s: %w", Name(sig), sel, ErrGone)
	}
	return sent, errors.Join(errs...)
}

// Send signals a process found earlier, without a search: it must still have the same start time. ErrGone means that it has
// ended; use Find to look for its successor.
func (f *FS) Send(p Process, sig syscall.Signal) error {
	if sig < 1 {
		return fmt.Errorf("signal %d: no such signal", sig)
	}
	return f.send(p, sig, nil)
}

// Check returns whether Send would be permitted, without sending a signal (signal 0 of kill(2)).
func (f *FS) Check(p Process) error { return f.send(p, 0, nil) }

func (f *FS) send(p Process, sig syscall.Signal, m *matcher) error {
	switch {
	case p.PID < 1:
		// For kill(2), 0 and negative numbers are groups, and -1 means all processes.
		return fmt.Errorf("signal %s to PID %d: %w", Name(sig), p.PID, ErrNotFound)
	case !f.ours:
		return fmt.Errorf("signal %s to %s: %s: %w", Name(sig), p, f.root, ErrForeign)
	case p.PID == f.self || p.Sandbox:
		return fmt.Errorf("signal %s to %s: %w", Name(sig), p, ErrForbidden)
	}
	err := f.deliver(p, sig, m)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EPERM):
		return f.explain(p, sig)
	case gone(err):
		err = ErrGone
	}
	return fmt.Errorf("signal %s to %s: %w", Name(sig), p, err)
}

// deliver opens a pidfd of the process, checks that it is the selected one, and signals it: a reused PID cannot be hit.
// Without pidfd a window of microseconds remains between check and kill.
func (f *FS) deliver(p Process, sig syscall.Signal, m *matcher) error {
	fd, err := f.kernel.PidfdOpen(p.PID)
	switch {
	case noPidfd(err):
		return f.kill(p, sig, m)
	case err != nil:
		return err
	}
	defer f.kernel.Close(fd)
	if err := f.same(p, m); err != nil {
		return err
	}
	err = f.kernel.PidfdSend(fd, sig)
	if errors.Is(err, unix.ENOSYS) {
		return f.kill(p, sig, m)
	}
	return err
}

func (f *FS) kill(p Process, sig syscall.Signal, m *matcher) error {
	if err := f.same(p, m); err != nil {
		return err
	}
	return f.kernel.Kill(p.PID, sig)
}

// same reads the process again and checks its start time, and if m is given all of its conditions.
func (f *FS) same(p Process, m *matcher) error {
	name := strconv.Itoa(p.PID)
	if m == nil {
		st, err := f.stat(name)
		if err == nil && (st.Start != p.Start || st.Dead()) {
			return ErrGone
		}
		return err
	}
	root, err := f.open()
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(root) }()
	s := search{root: root, self: f.self}
	now, err := s.inspect(p.PID, name, m)
	if errors.Is(err, errOther) || (err == nil && now.Start != p.Start) {
		return ErrGone
	}
	return err
}

func (f *FS) stat(name string) (procfile.Stat, error) {
	var r reader
	b, err := r.file(unix.AT_FDCWD, f.root+"/"+name+"/stat", maxFile)
	if err != nil {
		return procfile.Stat{}, err
	}
	return procfile.ParseStat(b)
}

// explain converts EPERM to the reason. A permission that cannot be read counts as missing.
func (f *FS) explain(p Process, sig syscall.Signal) error {
	e := &PermissionError{Process: p, Signal: sig, UID: os.Geteuid()}
	var r reader
	if b, err := r.file(unix.AT_FDCWD, f.root+"/"+strconv.Itoa(f.self)+"/status", maxFile); err == nil {
		if own, err := procfile.ParseCredentials(b); err == nil {
			e.UID, e.CapKill = own.EUID, own.Capabilities&(1<<capKill) != 0
		}
	}
	return e
}

// noPidfd reports whether pidfds are missing: Linux before 5.3 and gVisor return ENOSYS. pidfd_open itself never returns
// EPERM; that comes from a seccomp filter older than the call.
func noPidfd(err error) bool { return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) }

// kernel sends signals; tests use one that records them.
type kernel interface {
	PidfdOpen(pid int) (fd int, err error)
	PidfdSend(fd int, sig syscall.Signal) error
	Kill(pid int, sig syscall.Signal) error
	Close(fd int)
}

type linux struct{}

func (linux) PidfdOpen(pid int) (int, error) { return unix.PidfdOpen(pid, 0) }
func (linux) PidfdSend(fd int, sig syscall.Signal) error {
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}
func (linux) Kill(pid int, sig syscall.Signal) error { return unix.Kill(pid, sig) }
func (linux) Close(fd int)                           { _ = unix.Close(fd) }
