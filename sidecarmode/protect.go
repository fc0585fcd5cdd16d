package sidecarmode

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// closeProcess keeps other containers of a shared PID namespace out of this process: without it a process with our UID
// reads our files, the token of the service account among them, below /proc/<pid>/root, and our memory. It takes
// CAP_SYS_PTRACE then (PR_SET_DUMPABLE of prctl(2), ptrace(2)). Commands that the sidecar runs are not covered: execve
// sets it back.
func closeProcess() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("protect this process from others: %w", err)
	}
	return nil
}
