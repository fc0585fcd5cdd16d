// Package mounts makes the mounts of a node, and the mount points for them that the machine lacks.
package mounts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/refit-project/refit/test/cluster/state"
)

// Held is what Hold answers when the node's namespaces are ready.
const Held = "held\n"

// Mount is a folder of the node that lies over one of the machine.
type Mount struct{ Source, Target string }

// Of the folder of a node are the places where a node's programs and pods look for each other. As every node has its own
// behind the same path, one manifest with hostPath volumes fits them all, as on real machines.
func Of(folder string) []Mount {
	var all []Mount
	for _, target := range append([]string{"/run"}, points...) {
		all = append(all, Mount{filepath.Join(folder, target), target})
	}
	return all
}

// Disk is where the container runtime of a node keeps images and containers.
func Disk(folder string) string { return filepath.Join(folder, "containerd") }

// points are the ones of them that a machine without Kubernetes does not have.
var points = []string{"/var/lib/cni", "/var/lib/kubelet", "/var/log/containers", "/var/log/pods"}

// Hold makes the mounts of a node in this process's own mount namespace, answers and keeps the namespaces
// until the context ends. folder is the node's folder, disk the size of a disk of its own for the container runtime, or empty.
func Hold(ctx context.Context, folder, disk string, answer *os.File) error {
	// What is mounted here stays here: no trace on the machine, even if nobody ever unmounts it.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	for _, mount := range Of(folder) {
		if err := syscall.Mount(mount.Source, mount.Target, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
			return fmt.Errorf("mount %s on %s: %w", mount.Source, mount.Target, err)
		}
	}
	if disk != "" {
		if err := errors.Join(os.MkdirAll(Disk(folder), 0o755), syscall.Mount("tmpfs", Disk(folder), "tmpfs", 0, "size="+disk)); err != nil {
			return fmt.Errorf("make a disk of %s: %w", disk, err)
		}
	}
	// /var/run is /run everywhere but in some container images.
	if resolved, err := filepath.EvalSymlinks("/var/run"); err == nil && resolved != "/run" {
		if err := syscall.Mount("/run", "/var/run", "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount /run on /var/run: %w", err)
		}
	}
	// Within the node they propagate as on a machine of its own, which volumes with mountPropagation need.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return fmt.Errorf("make mounts shared: %w", err)
	}
	// Nodes route between their pods and the others.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("forward packets: %w", err)
	}
	if _, err := answer.WriteString(Held); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if err := answer.Close(); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	<-ctx.Done()
	return nil
}

// ledger is where the mount points are noted that clusters of this machine have made on it.
func ledger() (string, error) {
	cache, err := state.CacheDir()
	return filepath.Join(cache, "mount-points"), err
}

// MakePoints makes the mount points this machine lacks.
func MakePoints() error {
	path, err := ledger()
	if err != nil {
		return err
	}
	release, err := state.Lock(path + ".lock")
	if err != nil {
		return err
	}
	defer release()
	noted, err := readLedger(path)
	if err != nil {
		return err
	}
	for _, dir := range points {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		// Noted before it is made: a run killed in between leaves a note too many, not a folder.
		noted = append(noted, dir)
		if err := state.WriteFile(path, strings.Join(noted, "\n")+"\n"); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// RemovePoints removes the mount points that clusters have made, unless others reports that another cluster of the
// machine is there. A folder that is not empty has found another user and stays.
func RemovePoints(others func() (bool, error)) error {
	path, err := ledger()
	if err != nil {
		return err
	}
	release, err := state.Lock(path + ".lock")
	if err != nil {
		return err
	}
	defer release()
	if needed, err := others(); err != nil || needed {
		return err
	}
	noted, err := readLedger(path)
	if err != nil {
		return err
	}
	for _, dir := range noted {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("remove mount point: %w", err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove mount point: %w", err)
	}
	return nil
}

func readLedger(path string) ([]string, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read mount points: %w", err)
	}
	return strings.Fields(string(content)), nil
}
