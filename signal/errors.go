package signal

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// Errors that callers distinguish.
var (
	// ErrNotFound means that no process matches the selector.
	ErrNotFound = errors.New("no such process")
	// ErrGone means that the process has ended, that another one has its PID, or that it no longer matches.
	ErrGone = errors.New("process is gone")
	// ErrForeign means that the proc file system shows another PID namespace than ours, so that its PIDs cannot be used.
	ErrForeign = errors.New("proc file system of another PID namespace")
	// ErrForbidden means that the sandbox process or this program was selected; neither is ever signalled.
	ErrForbidden = errors.New("not to be signalled")
)

// maxShown bounds how many candidates an AmbiguousError lists.
const maxShown = 5

// AmbiguousError means that a selector matches several processes and the choice does not select one.
type AmbiguousError struct {
	// Candidates are the matches in order of PID.
	Candidates []Process
	// Reason says what the choice requires.
	Reason string
}

func (e *AmbiguousError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d processes match, %s:", len(e.Candidates), e.Reason)
	for i, p := range e.Candidates {
		if i == maxShown {
			fmt.Fprintf(&b, " and %d more", len(e.Candidates)-maxShown)
			break
		}
		fmt.Fprintf(&b, " %s;", p)
	}
	return strings.TrimSuffix(b.String(), ";")
}

// PermissionError says why the kernel refused a signal. It is fs.ErrPermission for errors.Is.
type PermissionError struct {
	Process Process
	Signal  syscall.Signal
	// UID is the effective UID of this program. CapKill reports whether it has CAP_KILL.
	UID     int
	CapKill bool
}

// Error returns the rule of kill(2) and two solutions, because the obvious one, adding KILL to a non-root container, has no
// effect: Kubernetes sets no ambient capabilities (KEP-2763).
func (e *PermissionError) Error() string {
	head := fmt.Sprintf("signal %s to %s: operation not permitted: ", Name(e.Signal), e.Process)
	if e.CapKill || e.UID == e.Process.UID {
		return head + "UIDs or CAP_KILL would allow it, so a security module (AppArmor, SELinux) or another user namespace forbids it"
	}
	return head + fmt.Sprintf("it runs as UID %d, this program as UID %d without CAP_KILL; "+
		"run as the same UID, or as UID 0 with capability KILL (KILL added to a non-root container has no effect)",
		e.Process.UID, e.UID)
}

func (e *PermissionError) Unwrap() error { return fs.ErrPermission }

// gone reports whether reading a file of a process failed because the process ended.
// /proc answers ENOENT before open and ESRCH after.
func gone(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ESRCH)
}

func denied(err error) bool {
	return errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM)
}
