package signal

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/refit-project/refit/signal/procfile"
)

const (
	// maxCmdline is how much of a command line is read. A process may make its own gigabytes long.
	maxCmdline = 128 << 10
	// maxFile bounds every other file of /proc; the longest in use, cgroup with v1, stays below 4 KiB.
	maxFile = 64 << 10
	// firstRead is the size of one read. It holds a whole file of nearly every process.
	firstRead = 4 << 10
)

// reader reads files of /proc into one buffer. Its results are valid until the next call.
//
// It does not use package os, which makes a descriptor non-blocking, adds it to the poller and asks for its size; together
// these cost four times the three calls that a file of /proc needs.
type reader struct {
	buf []byte
}

// file returns the first most bytes of a file below the directory dir.
func (r *reader) file(dir int, name string, most int) ([]byte, error) {
	fd, err := openAt(dir, name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	if r.buf == nil {
		r.buf = make([]byte, firstRead)
	}
	var n int
	for n < most {
		if n == len(r.buf) {
			r.buf = append(r.buf, make([]byte, len(r.buf))...)
		}
		asked := r.buf[n:min(len(r.buf), most)]
		got, err := read(fd, asked)
		if err != nil {
			return nil, err
		}
		n += got
		if got < len(asked) {
			break
		}
	}
	return r.buf[:n], nil
}

func openAt(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func read(fd int, b []byte) (int, error) {
	for {
		n, err := unix.Read(fd, b)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// pids calls visit with each entry of the directory that is a PID, in the kernel's order, which is ascending in /proc.
func pids(ctx context.Context, root int, visit func(pid int)) error {
	buf := make([]byte, 32<<10)
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("scan processes: %w", err)
		}
		n, err := unix.Getdents(root, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("scan processes: %w", err)
		}
		if n <= 0 {
			return nil
		}
		if err := parseDirents(buf[:n], visit); err != nil {
			return err
		}
	}
}

// parseDirents reads the buffer of getdents64(2): inode and offset of 8 bytes, the record's length of 2, the type of 1, and
// the name up to a NUL.
func parseDirents(b []byte, visit func(pid int)) error {
	const length, header = 16, 19
	for len(b) > header {
		size := int(binary.NativeEndian.Uint16(b[length:]))
		if size <= header || size > len(b) {
			return fmt.Errorf("scan processes: %w: directory record of %d bytes", procfile.ErrMalformed, size)
		}
		name, _, _ := bytes.Cut(b[header:size], []byte{0})
		b = b[size:]
		if pid, ok := procfile.ParseUint(name); ok && pid >= 1 && pid <= procfile.MaxPID {
			visit(int(pid))
		}
	}
	return nil
}
