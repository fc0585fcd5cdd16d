package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/refit-project/refit/test/cluster/config"
	"github.com/refit-project/refit/test/cluster/mounts"
	"github.com/refit-project/refit/test/cluster/network"
	"github.com/refit-project/refit/test/cluster/pki"
	"github.com/refit-project/refit/test/cluster/process"
	"github.com/refit-project/refit/test/cluster/state"
)

// capSysResource is the number of CAP_SYS_RESOURCE in capabilities(7).
const capSysResource = 24

func (c *Cluster) nodeCgroup(node string) string { return c.state.Name() + "/" + node + "/host" }

// writeNode writes all that the node's programs read.
func (c *Cluster) writeNode(number int, options KubeletOptions) error {
	canRaise, err := hasCapability(capSysResource)
	if err != nil {
		return err
	}
	name := state.NodeName(number)
	node := config.Node{
		State:            c.state,
		Number:           number,
		APIServer:        c.controlPlane().APIServer(),
		Registry:         state.NodeIP(1) + ":" + strconv.Itoa(c.settings.RegistryPort),
		Runc:             c.settings.Programs.Tools + "/usr/sbin/runc",
		CNIPlugins:       c.settings.Programs.Tools + "/usr/lib/cni",
		RestrictOOMScore: !canRaise,
		FeatureGates:     options.FeatureGates,
		CRISocket:        options.CRISocket,
	}
	files := map[string]string{
		node.Path("config", "containerd.toml"):          node.Containerd(),
		node.Path("config", "kubelet.yaml"):             node.Kubelet(),
		node.Path("cni", "10-refit.conflist"):           node.CNI(),
		node.Path("registry", "_default", "hosts.toml"): node.RegistryHosts(),
	}
	for path, content := range files {
		if err := state.WriteFile(path, content); err != nil {
			return err
		}
	}
	authority, err := pki.Open(c.state.Path("pki"), "ca")
	if err != nil {
		return err
	}
	err = authority.Issue(name, pki.Subject{
		Name:   "system:node:" + name,
		Groups: []string{"system:nodes"},
		Hosts:  []string{name, state.NodeIP(number)},
	})
	if err != nil {
		return err
	}
	if err := authority.Kubeconfig(node.Path("config", "kubelet.kubeconfig"), node.APIServer, name); err != nil {
		return err
	}
	return authority.Kubeconfig(node.Path("config", "kube-proxy.kubeconfig"), node.APIServer, "kube-proxy")
}

// startNode makes the node's namespaces, held by a process that does nothing else, and joins its network to
// the nodes of the others. A node that has them is left alone.
func (c *Cluster) startNode(ctx context.Context, number int, all []int) error {
	name := state.NodeName(number)
	record := c.record(part{holder, name})
	if _, alive := process.Alive(record); alive {
		return nil
	}
	// The node's own, below which the kubelet makes the cgroup of the pods, and beside it the cgroup of its programs.
	if err := c.tree.MakeParent(c.state.Name() + "/" + name); err != nil {
		return err
	}
	if err := c.tree.Make(c.nodeCgroup(name)); err != nil {
		return err
	}
	for _, mount := range mounts.Of(c.state.Node(name)) {
		if err := os.MkdirAll(mount.Source, 0o755); err != nil {
			return err
		}
	}
	if err := c.hold(ctx, name, record); err != nil {
		return err
	}
	if err := c.linkSocket(name); err != nil {
		return err
	}
	if err := c.network().Connect(ctx, number, all); err != nil {
		// Half a network would be taken for a whole one by the next run.
		return errors.Join(err, process.Stop(ctx, record, true))
	}
	return nil
}

// hold starts the holder and waits until its mounts are made.
func (c *Cluster) hold(ctx context.Context, name, record string) error {
	reader, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }()
	where := process.Namespaces{Cgroup: c.nodeCgroup(name)}
	argv := []string{
		c.starter(), "exec", "--cgroup=" + where.Cgroup, "--",
		c.starter(), "hold", "--folder=" + c.state.Node(name),
	}
	spec := process.Spec{Record: record, Log: c.log(part{holder, name}), Argv: argv}
	err = process.Spawn(ctx, spec, argv, writer, &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
	})
	if err := errors.Join(err, writer.Close()); err != nil {
		return err
	}
	answer, err := io.ReadAll(reader)
	if err != nil {
		return err
	}
	if string(answer) != mounts.Held {
		return fmt.Errorf("namespaces of %s: the end of %s:\n%s", name, spec.Log, tail(spec.Log))
	}
	return nil
}

// linkSocket makes the node's containerd socket easy to find from the machine.
func (c *Cluster) linkSocket(name string) error {
	link := c.state.Node(name, "containerd.sock")
	if err := os.RemoveAll(link); err != nil {
		return err
	}
	return os.Symlink("run/containerd/containerd.sock", link)
}

func (c *Cluster) network() network.Network {
	return network.Network{Starter: c.starter(), Holder: func(number int) (int, bool) {
		record, alive := process.Alive(c.record(part{holder, state.NodeName(number)}))
		return record.PID, alive
	}}
}

// hasCapability says whether this process may use a capability.
func hasCapability(number uint) (bool, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false, fmt.Errorf("read capabilities: %w", err)
	}
	return data[number/32].Effective&(1<<(number%32)) != 0, nil
}
