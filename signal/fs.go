package signal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/refit-project/refit/signal/procfile"
)

// FS is a proc file system. It keeps nothing open between calls and may be used by several goroutines.
type FS struct {
	root string
	// self is our own PID in it, 0 if it does not show this process.
	self   int
	ours   bool
	kernel kernel
}

// New returns the proc file system mounted at root, "/proc" in production. Processes of another tree can be found, but
// signalled only if it shows this program with its own PID. A /proc of another PID namespace, for example mounted from the
// host, does not.
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
		return f, nil //nolint:nilerr // a captured tree need not show this process
	}
	if f.self, err = strconv.Atoi(link); err != nil {
		return nil, fmt.Errorf("proc file system: %s/self leads to %q", root, clip([]byte(link)))
	}
	f.ours = f.self == os.Getpid() && f.oneNamespace()
	return f, nil
}

// oneNamespace reports whether PIDs here are PIDs of our own namespace: NSpid of status then has one number, and one more
// for each namespace between (pid_namespaces(7)). gVisor has no NSpid and no nesting.
func (f *FS) oneNamespace() bool {
	b, err := os.ReadFile(filepath.Join(f.root, strconv.Itoa(f.self), "status"))
	if err != nil {
		return false
	}
	line, ok := procfile.StatusLine(b, "\nNSpid:")
	_, rest := procfile.NextWord(line)
	second, _ := procfile.NextWord(rest)
	return !ok || len(second) == 0
}

// Processes lists every process that is neither a kernel thread nor a zombie, in order of PID.
func (f *FS) Processes(ctx context.Context) ([]Process, error) {
	s, err := f.scan(ctx, nil)
	return s.found, err
}

// share is the number of processes that justify another goroutine.
const share = 100

// scan reads processes: with a matcher all that may match, without one all of them. The time is spent in the kernel, so
// that two processors halve it.
func (f *FS) scan(ctx context.Context, m *matcher) (search, error) {
	all, err := f.list(ctx)
	if err != nil {
		return search{}, err
	}
	parts := make([]search, max(1, min(runtime.GOMAXPROCS(0), len(all)/share)))
	var group errgroup.Group
	for i := range parts {
		group.Go(func() error { return parts[i].run(ctx, f, m, all[i*len(all)/len(parts):(i+1)*len(all)/len(parts)]) })
	}
	err = group.Wait()
	var sum search
	for _, s := range parts {
		sum.add(s)
	}
	slices.SortFunc(sum.found, func(a, b Process) int { return a.PID - b.PID })
	return sum, err
}

// list returns the PIDs of all processes.
func (f *FS) list(ctx context.Context) ([]int, error) {
	root, err := f.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(root) }()
	var all []int
	err = pids(ctx, root, func(pid int) { all = append(all, pid) })
	return all, err
}

func (f *FS) open() (int, error) {
	fd, err := openAt(unix.AT_FDCWD, f.root, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", f.root, err)
	}
	return fd, nil
}
