package lifecycle

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"text/tabwriter"

	"github.com/refit-project/refit/test/cluster/process"
	"github.com/refit-project/refit/test/cluster/state"
)

// Status writes what runs and what does not.
func (c *Cluster) Status(ctx context.Context) error {
	if !c.exists() {
		return ErrNotUp
	}
	numbers, err := c.state.Nodes()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tNODE\tPID\tSTATE\tLOG")
	for _, component := range c.components(numbers) {
		record, alive := c.running(component)
		state := "running"
		switch {
		case !alive:
			state, record.PID = "stopped", 0
		case record.Stopped():
			state = "suspended"
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", component.name, component.node, record.PID, state, c.log(component))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	api, err := c.connect()
	if err != nil {
		return err
	}
	if err := api.NodesReady(ctx, numbers); err != nil {
		return fmt.Errorf("nodes: %w", err)
	}
	fmt.Fprintln(c.out, "every node is ready")
	return nil
}

// Enter becomes a command in the network of a node, with the cluster's programs on its path.
func (c *Cluster) Enter(node string, argv []string) error {
	if !c.exists() {
		return ErrNotUp
	}
	ground, alive := process.Alive(c.record(part{holder, node}))
	if !alive {
		return fmt.Errorf("no running node %q", node)
	}
	path := c.state.Path("bin") + ":" + os.Getenv("PATH")
	for key, value := range map[string]string{
		"KUBECONFIG":    c.state.Path("kubeconfig"),
		"PATH":          path,
		"REFIT_CLUSTER": c.state.Path(),
	} {
		if err := os.Setenv(key, value); err != nil {
			return err
		}
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	return process.Exec(process.Namespaces{Net: ground.PID}, append([]string{program}, argv[1:]...), os.Environ())
}

// DefaultNode is where the API server is.
func DefaultNode() string { return state.NodeName(1) }
