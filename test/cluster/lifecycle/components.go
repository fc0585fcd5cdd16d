package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/refit-project/refit/test/cluster/config"
	"github.com/refit-project/refit/test/cluster/process"
	"github.com/refit-project/refit/test/cluster/state"
)

// The names of the components.
const (
	gateway           = "gateway"
	etcd              = "etcd"
	apiServer         = "apiserver"
	controllerManager = "controller-manager"
	scheduler         = "scheduler"
	holder            = "holder"
	containerd        = "containerd"
	kubelet           = "kubelet"
	kubeProxy         = "kube-proxy"
)

// ControlPlaneComponents and NodeComponents are what Stop, Start and their like can be told.
var (
	ControlPlaneComponents = []string{etcd, apiServer, controllerManager, scheduler}
	NodeComponents         = []string{containerd, kubelet, kubeProxy}
)

// part is one process of the cluster; node is empty for the control plane's.
type part struct{ name, node string }

func (p part) String() string {
	if p.node == "" {
		return p.name
	}
	return p.name + " of " + p.node
}

func (c *Cluster) record(component part) string {
	return c.state.Path("run", component.node, component.name+".json")
}

func (c *Cluster) log(component part) string { return c.state.Log(component.name, component.node) }

// running returns the component's own process and whether it runs and will be kept running.
func (c *Cluster) running(component part) (process.Record, bool) {
	record, alive := process.Alive(c.record(component))
	if component.name == holder || !alive {
		return record, alive
	}
	return process.Main(c.record(component))
}

// components are all of them, in the order of their start.
func (c *Cluster) components(numbers []int) []part {
	all := []part{{holder, state.NodeName(1)}, {gateway, ""}}
	for _, name := range ControlPlaneComponents {
		all = append(all, part{name, ""})
	}
	for _, number := range numbers {
		if number > 1 {
			all = append(all, part{holder, state.NodeName(number)})
		}
		for _, name := range NodeComponents {
			all = append(all, part{name, state.NodeName(number)})
		}
	}
	return all
}

// find checks the names somebody typed.
func (c *Cluster) find(name, node string) (part, error) {
	if !c.exists() {
		return part{}, ErrNotUp
	}
	if slices.Contains(ControlPlaneComponents, name) {
		if node != "" {
			return part{}, fmt.Errorf("%s belongs to no node", name)
		}
		return part{name, ""}, nil
	}
	if !slices.Contains(NodeComponents, name) {
		return part{}, fmt.Errorf("no component %q: there are %s, and on a node %s", name,
			strings.Join(ControlPlaneComponents, ", "), strings.Join(NodeComponents, ", "))
	}
	if node == "" {
		node = state.NodeName(1)
	}
	if _, err := os.Stat(c.state.Node(node)); err != nil {
		return part{}, fmt.Errorf("no node %q", node)
	}
	return part{name, node}, nil
}

// Stop ends a component, for good: with SIGTERM and, five seconds later, SIGKILL, or with SIGKILL at once.
// An empty node is the first one.
func (c *Cluster) Stop(ctx context.Context, name, node string, kill bool) error {
	component, err := c.find(name, node)
	if err != nil {
		return err
	}
	if err := process.Stop(ctx, c.record(component), kill); err != nil {
		return fmt.Errorf("stop %s: %w", component, err)
	}
	return nil
}

// Start starts a component that does not run. kubelet reads its options again.
func (c *Cluster) Start(ctx context.Context, name, node string, options KubeletOptions) error {
	component, err := c.find(name, node)
	if err != nil {
		return err
	}
	if _, alive := process.Alive(c.record(component)); !alive && component.name == kubelet {
		number, err := state.NodeNumber(component.node)
		if err != nil {
			return err
		}
		if err := c.writeNode(number, options); err != nil {
			return err
		}
	}
	return c.startAll(ctx, []part{component})
}

// Kill kills a component with SIGKILL. Its supervisor starts it again a second later.
func (c *Cluster) Kill(name, node string) error { return c.signal(name, node, syscall.SIGKILL) }

// Suspend sends a component SIGSTOP: its connections stay open and nobody answers.
func (c *Cluster) Suspend(name, node string) error { return c.signal(name, node, syscall.SIGSTOP) }

// Resume sends SIGCONT.
func (c *Cluster) Resume(name, node string) error { return c.signal(name, node, syscall.SIGCONT) }

func (c *Cluster) signal(name, node string, signal syscall.Signal) error {
	component, err := c.find(name, node)
	if err != nil {
		return err
	}
	if err := process.Signal(c.record(component), signal); err != nil {
		return fmt.Errorf("%s: %w", component, err)
	}
	return nil
}

// startAll starts the components that do not run. Holders are started by startNode alone.
func (c *Cluster) startAll(ctx context.Context, components []part) error {
	for _, component := range components {
		if component.name == holder {
			continue
		}
		spec, err := c.spec(component)
		if err != nil {
			return err
		}
		if err := process.Start(ctx, spec); err != nil {
			return fmt.Errorf("start %s: %w", component, err)
		}
	}
	return nil
}

// spec is how a component is started.
func (c *Cluster) spec(component part) (process.Spec, error) {
	node := component.node
	if node == "" {
		node = state.NodeName(1)
	}
	ground, alive := process.Alive(c.record(part{holder, node}))
	if !alive {
		return process.Spec{}, fmt.Errorf("%s has lost its namespaces: bring the cluster up again", node)
	}
	spec := process.Spec{
		Record:  c.record(component),
		Log:     c.log(component),
		Starter: c.starter(),
		Where:   process.Namespaces{Net: ground.PID, Cgroup: c.controlPlaneCgroup()},
	}
	if component.node == "" {
		spec.Argv = c.controlPlaneCommand(component.name, ground.PID)
		// The gateway stays outside and enters by itself.
		if component.name == gateway {
			spec.Where.Net = 0
		}
		return spec, nil
	}
	number, err := state.NodeNumber(node)
	if err != nil {
		return process.Spec{}, err
	}
	spec.Where.Mount, spec.Where.Cgroup = ground.PID, c.nodeCgroup(node)
	spec.Argv = c.nodeCommand(component.name, config.Node{State: c.state, Number: number})
	spec.Env = []string{"PATH=" + strings.Join([]string{
		c.settings.Programs.Containerd,
		filepath.Join(c.settings.Programs.Tools, "usr/sbin"),
		os.Getenv("PATH"), "/usr/sbin", "/sbin", "/usr/bin", "/bin",
	}, ":")}
	return spec, nil
}

func (c *Cluster) controlPlaneCommand(name string, ground int) []string {
	plane := c.controlPlane()
	switch name {
	case gateway:
		return []string{
			c.starter(), "gateway", "--node=" + strconv.Itoa(ground), "--blobs=" + c.state.Path("registry-blobs"),
			"--api-port=" + strconv.Itoa(c.settings.APIPort), "--registry-port=" + strconv.Itoa(c.settings.RegistryPort),
		}
	case etcd:
		return append([]string{filepath.Join(c.settings.Programs.Etcd, "etcd")}, plane.Etcd()...)
	case apiServer:
		return append([]string{c.kube()}, plane.APIServerArgs()...)
	case controllerManager:
		return append([]string{c.kube()}, plane.ControllerManager()...)
	case scheduler:
		return append([]string{c.kube()}, plane.Scheduler()...)
	}
	panic("no command for component " + name)
}

func (c *Cluster) nodeCommand(name string, node config.Node) []string {
	switch name {
	case containerd:
		return []string{filepath.Join(c.settings.Programs.Containerd, "containerd"), "--config=" + node.Path("config", "containerd.toml")}
	case kubelet:
		return append([]string{c.kube()}, node.KubeletArgs()...)
	case kubeProxy:
		return append([]string{c.kube()}, node.ProxyArgs()...)
	}
	panic("no command for component " + name)
}

// tail is the end of a log, for an error message.
func tail(path string) string {
	const lines = 15
	content, err := os.ReadFile(path)
	if err != nil {
		return errors.Unwrap(err).Error()
	}
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
