package signal

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/refit-project/refit/signal/procfile"
)

// ticks is the number of units of Process.Start in a second: USER_HZ, which is 100 on every architecture that Go supports
// (time(7)).
const ticks = 100

// Age returns the time since a process started.
func Age(p Process) (time.Duration, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0, fmt.Errorf("time since boot: %w", err)
	}
	return time.Duration(now.Nano()) - time.Duration(p.Start)*(time.Second/ticks), nil //nolint:gosec // overflows 292 years after boot
}

// CPUTime returns the processor time that all threads of a process have used, in units of 10 ms. The error is ErrGone if the process
// has ended.
func (f *FS) CPUTime(p Process) (time.Duration, error) {
	stat, err := f.stat(strconv.Itoa(p.PID))
	switch {
	case err != nil && gone(err), err == nil && (stat.Start != p.Start || stat.Dead()):
		return 0, fmt.Errorf("processor time of %s: %w", p, ErrGone)
	case err != nil:
		return 0, fmt.Errorf("processor time of %s: %w", p, err)
	}
	return time.Duration(stat.CPU) * (time.Second / ticks), nil //nolint:gosec // overflows after 292 years
}

// Handling says what a signal does to a process, as far as the kernel shows it.
type Handling int

const (
	// DefaultAction is taken, which for most signals ends the process (signal(7)).
	DefaultAction Handling = iota
	// Handled means that the process has a handler, ignores or blocks the signal. It is also the answer where the kernel does not show
	// this, as in gVisor.
	Handled
	// HandledByRuntime means that the process has handlers for all signals that are left to programs. The runtime of Go installs them
	// before the program begins; whether this has asked for the signal, or is ended by it, cannot be seen ("Default behavior of signals in Go
	// programs", package os/signal).
	HandledByRuntime
)

// leftToPrograms are the real-time signals that glibc does not use itself: 35 to 64.
const leftToPrograms uint64 = (1<<30 - 1) << 34

// Handling returns what sig does to a process: SigBlk, SigIgn and SigCgt of proc_pid_status(5). The error is ErrGone if the process has
// ended.
func (f *FS) Handling(p Process, sig syscall.Signal) (Handling, error) {
	b, err := os.ReadFile(filepath.Join(f.root, strconv.Itoa(p.PID), "status"))
	if err == nil {
		err = f.same(p, nil)
	}
	switch {
	case err != nil && gone(err):
		return 0, fmt.Errorf("signals of %s: %w", p, ErrGone)
	case err != nil:
		return 0, fmt.Errorf("signals of %s: %w", p, err)
	}
	handling, err := handlingIn(b, sig)
	if err != nil {
		return 0, fmt.Errorf("signals of %s: %w", p, err)
	}
	return handling, nil
}

// handlingIn reads the text of /proc/<pid>/status.
func handlingIn(status []byte, sig syscall.Signal) (Handling, error) {
	said := false
	for _, key := range []string{"\nSigBlk:", "\nSigIgn:", "\nSigCgt:"} {
		line, ok := procfile.StatusLine(status, key)
		if !ok {
			continue
		}
		word, _ := procfile.NextWord(line)
		mask, err := strconv.ParseUint(string(word), 16, 64)
		if err != nil {
			return 0, procfile.ErrMalformed
		}
		said = true
		switch {
		case mask>>(sig-1)&1 == 0:
		case key == "\nSigCgt:" && mask&leftToPrograms == leftToPrograms:
			return HandledByRuntime, nil
		default:
			return Handled, nil
		}
	}
	if !said {
		return Handled, nil
	}
	return DefaultAction, nil
}
