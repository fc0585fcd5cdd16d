// Package memory gives back to the operating system what a program holds and does not need.
//
// In the room is that alone: when to do it is the business of the modes, and how memory comes to be needed that of
// everybody else.
package memory

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Release gives back free heap, and the pages of the program itself. Of those, initialising the packages touches most,
// and the kernel counts them as the process's until somebody else wants the memory; they stay in the page cache, and
// what is still needed comes back from there page by page. It takes milliseconds, and is for when the work is over.
//
// The heap has been released even when there is an error.
func Release() error {
	debug.FreeOSMemory()
	if err := dropProgram(); err != nil {
		return fmt.Errorf("release the pages of the program: %w", err)
	}
	return nil
}

// ErrRelocated means that only the heap has been released: in a program that the dynamic loader has changed (ELF type DYN),
// pages that cannot be written may hold what it wrote before.
var ErrRelocated = errors.New("only programs at a fixed address are loaded without changes (ELF type EXEC)")

// dropProgram unmaps what was never written of the executable, madvise(2), MADV_DONTNEED.
func dropProgram() error {
	path, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	if err := unrelocated("/proc/self/exe"); err != nil {
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
		if m.Pathname != path || m.Perms.Write || !m.Perms.Read {
			continue // of written pages, what was written would be lost
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.StartAddr, m.EndAddr-m.StartAddr, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("madvise: %w", errno)
		}
	}
	return nil
}

// unrelocated reads e_type, elf(5): the two bytes after e_ident, ET_EXEC being 2 in the machine's byte order.
func unrelocated(program string) error {
	file, err := os.Open(program)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	var header [18]byte
	if _, err := io.ReadFull(file, header[:]); err != nil {
		return err
	}
	if kind := header[16] | header[17]; kind != 2 {
		return ErrRelocated
	}
	return nil
}
