package sidecarmode

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// closeProcess protects this process from other containers of a shared PID namespace: without it a process with our UID can
// read our files below /proc/<pid>/root, including the token of the service account, and our memory. With it that needs
// CAP_SYS_PTRACE (PR_SET_DUMPABLE of prctl(2), ptrace(2)). Commands that the sidecar runs are not protected, because execve
// resets it.
func closeProcess() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("protect this process from others: %w", err)
	}
	return nil
}
