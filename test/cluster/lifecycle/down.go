package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/refit-project/refit/test/cluster/mounts"
	"github.com/refit-project/refit/test/cluster/process"
	"github.com/refit-project/refit/test/cluster/state"
)

const (
	killTimeout = 30 * time.Second
	// staleAfter is how old an empty cgroup of another cluster must be: younger, that cluster may just be
	// about to fill it.
	staleAfter = time.Minute
)

// Down takes the cluster down and removes everything of it from the machine, except the logs if they are to be kept.
func (c *Cluster) Down(ctx context.Context, keepLogs bool) error {
	release, err := c.lock()
	if err != nil {
		return err
	}
	defer release()
	if _, err := os.Stat(c.state.Path()); err != nil && len(c.leftovers()) == 0 {
		c.report.Say("no cluster here")
		return nil
	}
	if err := c.report.Step("taking the cluster down", func() error { return c.clear(ctx, keepLogs) }); err != nil {
		return err
	}
	return mounts.RemovePoints(c.others)
}

// others reports whether the machine has clusters of other checkouts.
func (c *Cluster) others() (bool, error) {
	names, err := c.tree.Names(state.NamePrefix)
	return slices.ContainsFunc(names, func(name string) bool { return name != c.state.Name() }), err
}

// leftovers are the processes of the cluster, whoever started them.
func (c *Cluster) leftovers() []int {
	pids, err := c.tree.Processes(c.state.Name())
	if err != nil {
		return nil
	}
	return pids
}

// clear kills all processes of the cluster, with which its namespaces, mounts and network devices go, and
// removes its cgroups and its state folder.
func (c *Cluster) clear(ctx context.Context, keepLogs bool) error {
	if err := c.empty(ctx, c.state.Name()); err != nil {
		return err
	}
	if err := c.noMounts(); err != nil {
		return err
	}
	entries, err := os.ReadDir(c.state.Path())
	if errors.Is(err, os.ErrNotExist) {
		entries, err = nil, nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if keepLogs && entry.Name() == "logs" {
			continue
		}
		if err := os.RemoveAll(c.state.Path(entry.Name())); err != nil {
			return err
		}
	}
	c.settings = settings{}
	if !keepLogs {
		return os.RemoveAll(c.state.Path())
	}
	return nil
}

// clearNode does for one node what clear does for all.
func (c *Cluster) clearNode(ctx context.Context, name string) error {
	if err := c.empty(ctx, c.state.Name()+"/"+name); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(c.state.Node(name)), os.RemoveAll(c.state.Path("run", name)))
}

// empty kills the processes of a cgroup until there are none and removes it. A process may have been
// starting others, so one round need not be enough.
func (c *Cluster) empty(ctx context.Context, name string) error {
	var fault error
	var left []int
	err := process.Until(ctx, killTimeout, func() bool {
		if left, fault = c.tree.Processes(name); fault != nil {
			return true
		}
		for _, pid := range left {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				fault = fmt.Errorf("kill %d: %w", pid, err)
				return true
			}
		}
		// A cgroup stays busy for a moment after its last process.
		return len(left) == 0 && c.tree.Remove(name) == nil
	})
	if fault != nil {
		return fault
	}
	if err != nil {
		return fmt.Errorf("processes %v of cgroup %s: %w", left, name, errors.Join(err, c.tree.Remove(name)))
	}
	return nil
}

// noMounts refuses to go on while something is mounted in the state folder, since what would be removed
// might be somewhere else.
func (c *Cluster) noMounts() error {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mountinfo)) {
		fields := strings.Fields(line)
		if len(fields) > 4 && strings.HasPrefix(fields[4], c.state.Path()+"/") {
			return fmt.Errorf("%s is mounted: unmount it", fields[4])
		}
	}
	return nil
}

// sweep removes the cgroups of clusters of other checkouts that no process is left in. All else of a
// cluster goes with its last process.
func (c *Cluster) sweep() error {
	names, err := c.tree.Names(state.NamePrefix)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == c.state.Name() {
			continue
		}
		pids, err := c.tree.Processes(name)
		if err != nil {
			return err
		}
		if len(pids) > 0 || c.tree.Age(name) < staleAfter {
			continue
		}
		c.report.Say("clearing the empty cgroup " + name + " of another checkout")
		if err := c.tree.Remove(name); err != nil {
			return err
		}
	}
	return nil
}
