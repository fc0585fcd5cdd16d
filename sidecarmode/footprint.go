package sidecarmode

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// settled is how long after the start nearly everything that only the start needs has been used.
const settled = 3 * time.Second

// shrink gives back, once, what only the start needed, and returns when it has or when ctx ends. That is not the heap
// so much as the program itself: initialising its packages touches most of its pages, and the kernel counts those as
// resident until somebody else wants the memory. What is still needed comes back page by page from the page cache.
func (s *sidecar) shrink(ctx context.Context) error {
	timer := time.NewTimer(settled)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-timer.C:
	}
	debug.FreeOSMemory()
	if err := dropProgramPages(); err != nil {
		s.logger.Debug("pages of the program stay resident", "err", err)
	}
	return nil
}

// dropProgramPages unmaps the pages of our executable that were never written to, madvise(2), MADV_DONTNEED.
func dropProgramPages() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	self, err := procfs.Self()
	if err != nil {
		return err
	}
	maps, err := self.ProcMaps()
	if err != nil {
		return err
	}
	for _, m := range maps {
		if m.Pathname != program || m.Perms.Write || !m.Perms.Read {
			continue // of written pages, what was written would be lost
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.StartAddr, m.EndAddr-m.StartAddr, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("madvise: %w", errno)
		}
	}
	return nil
}
