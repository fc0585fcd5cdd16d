package main

import (
	"fmt"
	"os"
	ossignal "os/signal"
	"strconv"
	"strings"
	"syscall"
)

func notify(hup chan<- os.Signal) { ossignal.Notify(hup, syscall.SIGHUP) }

// forgetPeak resets VmHWM (proc(5), clear_refs).
func (c *contender) forgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", c.sidecar.Process.Pid), []byte("5"), 0)
}

// peak is VmHWM in bytes.
func (c *contender) peak() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.sidecar.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no VmHWM for process %d", c.sidecar.Process.Pid)
}

// fileSystem names the kind, for what sync costs depends on it.
func fileSystem(dir string) string {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return err.Error()
	}
	known := map[int64]string{0xef53: "ext4", 0x58465342: "xfs", 0x9123683e: "btrfs", 0x01021994: "tmpfs", 0x794c7630: "overlayfs"}
	if name, ok := known[int64(stat.Type)]; ok {
		return name
	}
	return fmt.Sprintf("file system %#x", stat.Type)
}
