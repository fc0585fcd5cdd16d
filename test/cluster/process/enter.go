package process

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/refit-project/refit/test/cluster/cgroup"
)

// Namespaces says where a program runs. Zero means where it was started from.
type Namespaces struct {
	// Net and Mount are processes whose network and mount namespace are entered.
	Net, Mount int
	// Cgroup is the cgroup joined.
	Cgroup string
}

func (n Namespaces) flags() []string {
	return []string{
		"--cgroup=" + n.Cgroup,
		"--net=" + strconv.Itoa(n.Net),
		"--mount=" + strconv.Itoa(n.Mount),
	}
}

// Exec enters the namespaces and becomes the program in argv[0], a path. It returns only an error.
func Exec(where Namespaces, argv, env []string) error {
	// Namespaces belong to a thread. execve makes this one the process.
	runtime.LockOSThread()
	if where.Cgroup != "" {
		tree, err := cgroup.Detect()
		if err != nil {
			return err
		}
		if err := tree.Join(where.Cgroup); err != nil {
			return err
		}
	}
	if err := where.enter(); err != nil {
		return err
	}
	if err := syscall.Exec(argv[0], argv, env); err != nil {
		return fmt.Errorf("exec %s: %w", argv[0], err)
	}
	return nil
}

func (n Namespaces) enter() error {
	type entry struct {
		pid  int
		name string
		kind int
	}
	// All are opened before any is entered: /proc may look different afterwards.
	var open []*os.File
	var kinds []int
	for _, entry := range []entry{{n.Net, "net", unix.CLONE_NEWNET}, {n.Mount, "mnt", unix.CLONE_NEWNS}} {
		if entry.pid == 0 {
			continue
		}
		file, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", entry.pid, entry.name))
		if err != nil {
			return fmt.Errorf("enter namespace: %w", err)
		}
		defer func() { _ = file.Close() }()
		open, kinds = append(open, file), append(kinds, entry.kind)
	}
	for i, file := range open {
		if kinds[i] == unix.CLONE_NEWNS {
			// A thread that shares its working directory with others may not change mount namespace.
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				return fmt.Errorf("enter namespace: unshare: %w", err)
			}
		}
		if err := unix.Setns(int(file.Fd()), kinds[i]); err != nil {
			return fmt.Errorf("enter namespace %s: %w", file.Name(), err)
		}
	}
	return nil
}

// EnterNet moves the calling thread, which the caller has locked, into the network namespace of a process.
func EnterNet(pid int) error { return Namespaces{Net: pid}.enter() }
