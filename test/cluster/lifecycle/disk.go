package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/refit-project/refit/test/cluster/mounts"
)

// FillDisk leaves no room on the disk of a node's container runtime, which must be a small one: see NODE_DISK.
func (c *Cluster) FillDisk(ctx context.Context, node string) error {
	name, err := c.filler(node)
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
func (c *Cluster) FreeDisk(node string) error {
	name, err := c.filler(node)
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
func (c *Cluster) filler(node string) (string, error) {
	const tmpfs = 0x01021994 // TMPFS_MAGIC of statfs(2)
	ground, err := c.powered(node)
	if err != nil {
		return "", err
	}
	disk := filepath.Join("/proc", strconv.Itoa(ground.PID), "root", mounts.Disk(c.state.Node(node)))
	var found syscall.Statfs_t
	if err := syscall.Statfs(disk, &found); err != nil {
		return "", fmt.Errorf("find the disk of %s: %w", node, err)
	}
	if found.Type != tmpfs {
		return "", fmt.Errorf("%s: %w", node, errDisk)
	}
	return filepath.Join(disk, "filler"), nil
}
