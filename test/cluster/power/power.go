// Package power simulates a power failure of a node of a running cluster, and fills the node's disk.
package power

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/refit-project/refit/test/cluster/cgroup"
	"github.com/refit-project/refit/test/cluster/mounts"
	"github.com/refit-project/refit/test/cluster/process"
	"github.com/refit-project/refit/test/cluster/state"
)

const killTimeout = 30 * time.Second

// Off kills every process of a node, the processes of its components and of its pods, as a power failure does. Its network and its
// files stay, /run too, which a machine that starts again finds empty. Who starts the components again gives the power back.
func Off(ctx context.Context, dir state.Dir, node string, components []string) error {
	holder, err := holderOf(dir, node)
	if err != nil {
		return err
	}
	tree, err := cgroup.Detect()
	if err != nil {
		return err
	}
	for _, name := range components {
		if err := process.Stop(ctx, dir.Path("run", node, name+".json"), true); err != nil {
			return fmt.Errorf("stop %s of %s: %w", name, node, err)
		}
	}
	var fault error
	err = process.Until(ctx, killTimeout, func() bool {
		var left []int
		left, fault = tree.Processes(dir.Name() + "/" + node)
		left = slices.DeleteFunc(left, func(pid int) bool { return pid == holder })
		for _, pid := range left {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				fault = fmt.Errorf("kill %d: %w", pid, err)
			}
		}
		return fault != nil || len(left) == 0
	})
	if err := errors.Join(fault, err); err != nil {
		return fmt.Errorf("end the processes of %s: %w", node, err)
	}
	return nil
}

// FillDisk leaves no room on the disk of a node's container runtime, which must be a small one: see NODE_DISK.
func FillDisk(ctx context.Context, dir state.Dir, node string) error {
	name, err := filler(dir, node)
	if err != nil {
		return err
	}
	file, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("fill the disk of %s: %w", node, err)
	}
	block := make([]byte, 1<<20)
	for err == nil && ctx.Err() == nil {
		_, err = file.Write(block)
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	return errors.Join(err, ctx.Err(), file.Close())
}

// FreeDisk gives the room back.
func FreeDisk(dir state.Dir, node string) error {
	name, err := filler(dir, node)
	if err != nil {
		return err
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("free the disk of %s: %w", node, err)
	}
	return nil
}

// errDisk means that what would be filled is the developer's disk.
var errDisk = errors.New("its container runtime has no disk of its own: bring the cluster up with NODE_DISK=2G")

// filler is a file on the node's disk, as it is seen from outside of the node's mount namespace.
func filler(dir state.Dir, node string) (string, error) {
	const tmpfs = 0x01021994 // TMPFS_MAGIC of statfs(2)
	holder, err := holderOf(dir, node)
	if err != nil {
		return "", err
	}
	disk := filepath.Join("/proc", strconv.Itoa(holder), "root", mounts.Disk(dir.Node(node)))
	var found syscall.Statfs_t
	if err := syscall.Statfs(disk, &found); err != nil {
		return "", fmt.Errorf("find the disk of %s: %w", node, err)
	}
	if found.Type != tmpfs {
		return "", fmt.Errorf("%s: %w", node, errDisk)
	}
	return filepath.Join(disk, "filler"), nil
}

// holderOf is the process that holds the namespaces of a node.
func holderOf(dir state.Dir, node string) (int, error) {
	if _, err := state.NodeNumber(node); err != nil {
		return 0, err
	}
	record, alive := process.Alive(dir.Path("run", node, "holder.json"))
	if !alive {
		return 0, fmt.Errorf("no node %q", node)
	}
	return record.PID, nil
}
