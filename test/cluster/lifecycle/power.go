package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/refit-project/refit/test/cluster/process"
	"github.com/refit-project/refit/test/cluster/state"
)

// PowerOff kills every process of a node, those of its pods included, as a power failure does. Its network and its files stay,
// /run too, which a machine that starts again finds empty.
func (c *Cluster) PowerOff(ctx context.Context, node string) error {
	ground, err := c.powered(node)
	if err != nil {
		return err
	}
	for _, name := range NodeComponents {
		if err := process.Stop(ctx, c.record(part{name, node}), true); err != nil {
			return fmt.Errorf("stop %s of %s: %w", name, node, err)
		}
	}
	var fault error
	err = process.Until(ctx, killTimeout, func() bool {
		var left []int
		left, fault = c.tree.Processes(c.state.Name() + "/" + node)
		left = slices.DeleteFunc(left, func(pid int) bool { return pid == ground.PID })
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

// PowerOn starts the programs of a node again. Kubelet then starts its pods. It returns without waiting for them.
func (c *Cluster) PowerOn(ctx context.Context, node string, options KubeletOptions) error {
	if _, err := c.powered(node); err != nil {
		return err
	}
	for _, name := range NodeComponents {
		if err := c.Start(ctx, name, node, options); err != nil {
			return err
		}
	}
	return nil
}

// powered returns the process that holds the namespaces of a node.
func (c *Cluster) powered(node string) (process.Record, error) {
	if !c.exists() {
		return process.Record{}, ErrNotUp
	}
	if _, err := state.NodeNumber(node); err != nil {
		return process.Record{}, err
	}
	ground, alive := process.Alive(c.record(part{holder, node}))
	if !alive {
		return ground, fmt.Errorf("no node %q", node)
	}
	return ground, nil
}
