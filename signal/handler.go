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

// Answers reports whether a process has a handler for sig, ignores it or blocks it: SigCgt, SigIgn and SigBlk of
// proc_pid_status(5). Otherwise the default action is taken, which for most signals ends the process (signal(7)). It
// returns true if the kernel does not show this, as in gVisor.
func (f *FS) Answers(p Process, sig syscall.Signal) (bool, error) {
	b, err := os.ReadFile(filepath.Join(f.root, strconv.Itoa(p.PID), "status"))
	if err == nil {
		err = f.same(p, nil)
	}
	switch {
	case err != nil && gone(err):
		return false, fmt.Errorf("signals of %s: %w", p, ErrGone)
	case err != nil:
		return false, fmt.Errorf("signals of %s: %w", p, err)
	}
	said := false
	for _, key := range []string{"\nSigBlk:", "\nSigIgn:", "\nSigCgt:"} {
		line, ok := procfile.StatusLine(b, key)
		if !ok {
			continue
		}
		word, _ := procfile.NextWord(line)
		mask, err := strconv.ParseUint(string(word), 16, 64)
		if err != nil {
			return false, fmt.Errorf("signals of %s: %w", p, procfile.ErrMalformed)
		}
		if said = true; mask>>(sig-1)&1 == 1 {
			return true, nil
		}
	}
	return !said, nil
}
