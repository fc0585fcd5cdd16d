package signal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// FS is a proc file system. It holds nothing open between calls and may be used by many goroutines.
type FS struct {
	root string
	// self is our own PID there, 0 when it does not show us.
	self   int
	ours   bool
	kernel kernel
}

// New takes the proc file system mounted at root, "/proc" in production. Another tree can be searched; it
// can be signalled into only when it shows this program under its own PID, which a /proc of another PID
// namespace, mounted from the host for instance, does not.
func New(root string) (*FS, error) {
	info, err := os.Stat(root)
	if err != nil {
		return nil, fmt.Errorf("proc file system: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("proc file system: %s: not a directory", root)
	}
	f := &FS{root: root, kernel: linux{}}
	link, err := os.Readlink(filepath.Join(root, "self"))
	if err != nil {
		return f, nil //nolint:nilerr // a captured tree need not show us
	}
	if f.self, err = strconv.Atoi(link); err != nil {
		return nil, fmt.Errorf("proc file system: %s/self leads to %q", root, clip([]byte(link)))
	}
	f.ours = f.self == os.Getpid() && f.oneNamespace()
	return f, nil
}

// oneNamespace reports that PIDs here are those of our own namespace: NSpid of status then has one number,
// with one more for each namespace between (pid_namespaces(7)). gVisor has no NSpid and no nesting.
func (f *FS) oneNamespace() bool {
	b, err := os.ReadFile(filepath.Join(f.root, strconv.Itoa(f.self), "status"))
	if err != nil {
		return false
	}
	line, ok := statusLine(b, "\nNSpid:")
	_, rest := nextWord(line)
	second, _ := nextWord(rest)
	return !ok || len(second) == 0
}

// Processes lists every process that is neither a kernel thread nor a zombie, in order of PID.
func (f *FS) Processes(ctx context.Context) ([]Process, error) {
	var all []Process
	err := f.scan(ctx, func(s *search, pid int, name []byte) error {
		p, err := s.inspect(pid, name, nil)
		if err == nil {
			all = append(all, p)
		}
		return s.count(err)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, byPID)
	return all, nil
}

// search is one pass over the processes, or a second look at one of them.
type search struct {
	fs   *FS
	root int // descriptor of FS.root
	reader
	// What to tell who found nothing: of how many processes everything was read, how many of them showed a
	// container, and how many did not show their executable.
	inspected, contained, blind int
}

func (f *FS) open() (*search, error) {
	fd, err := openAt(unix.AT_FDCWD, f.root, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", f.root, err)
	}
	return &search{fs: f, root: fd}, nil
}

func (s *search) close() { _ = unix.Close(s.root) }

func (f *FS) scan(ctx context.Context, visit func(s *search, pid int, name []byte) error) error {
	s, err := f.open()
	if err != nil {
		return err
	}
	defer s.close()
	return pids(ctx, s.root, func(pid int, name []byte) error { return visit(s, pid, name) })
}

func byPID(a, b Process) int { return a.PID - b.PID }
