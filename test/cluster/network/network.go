// Package network connects the nodes of a cluster with each other.
package network

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/refit-project/refit/test/cluster/state"
)

// Network is the network of a cluster. Its nodes have a network namespace each.
type Network struct {
	// Starter is the program of the cluster.
	Starter string
	// Holder is the process that holds the namespaces of a node, by the node's number; false if there is none.
	Holder func(number int) (pid int, alive bool)
}

// Connect gives the node its address and its way to the others: a bridge on the first node, and routes to
// every node's pods.
func (n Network) Connect(ctx context.Context, number int, all []int) error {
	address := fmt.Sprintf("%s/%d", state.NodeIP(number), state.NodePrefix)
	if number == 1 {
		return n.ip(ctx, 1,
			"link set lo up",
			"link add br0 type bridge",
			// A bridge without a port is down; this pair keeps it up.
			"link add up0 type veth peer name up1",
			"link set up0 master br0 up", "link set up1 up",
			"addr add "+address+" dev br0", "link set br0 up",
			"route add default via "+state.Gateway+" dev br0")
	}
	pid, alive := n.Holder(number)
	if !alive {
		return fmt.Errorf("%s has lost its namespaces", state.NodeName(number))
	}
	port := fmt.Sprintf("node%d", number)
	err := n.ip(ctx, 1,
		fmt.Sprintf("link add %s type veth peer name eth0 netns %d", port, pid),
		"link set "+port+" master br0 up")
	if err != nil {
		return err
	}
	err = n.ip(ctx, number,
		"link set lo up", "addr add "+address+" dev eth0", "link set eth0 up",
		"route add default via "+state.Gateway+" dev eth0")
	if err != nil {
		return err
	}
	for _, other := range all {
		if _, alive := n.Holder(other); !alive || other == number {
			continue
		}
		if err := n.ip(ctx, other, podRoute(number)); err != nil {
			return err
		}
		if err := n.ip(ctx, number, podRoute(other)); err != nil {
			return err
		}
	}
	return nil
}

// podRoute is how to reach the pods of a node. It may be there from that node's earlier life.
func podRoute(number int) string {
	return "route replace " + state.NodePods(number) + " via " + state.NodeIP(number)
}

// ip runs ip(8) in a node's network, once for each command.
func (n Network) ip(ctx context.Context, number int, commands ...string) error {
	pid, alive := n.Holder(number)
	if !alive {
		return fmt.Errorf("%s has lost its namespaces", state.NodeName(number))
	}
	path, err := exec.LookPath("ip")
	if err != nil {
		return err
	}
	for _, command := range commands {
		args := append([]string{"exec", "--net=" + strconv.Itoa(pid), "--", path}, strings.Fields(command)...)
		output, err := exec.CommandContext(ctx, n.Starter, args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s on %s: %w: %s", command, state.NodeName(number), err, strings.TrimSpace(string(output)))
		}
	}
	return nil
}
