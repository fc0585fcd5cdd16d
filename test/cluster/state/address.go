package state

import (
	"fmt"
	"strconv"
	"strings"
)

// Every cluster lives in network namespaces of its own with no way out, so that all of them, and the
// machine, may use the same addresses.
const (
	// ServiceCIDR is the range of Service addresses.
	ServiceCIDR = "10.96.0.0/16"
	// KubernetesService is the address of Service kubernetes.
	KubernetesService = "10.96.0.1"
	// DNSService is the address of Service kube-dns.
	DNSService = "10.96.0.10"
	// PodCIDR holds the pods of all nodes.
	PodCIDR = "10.244.0.0/16"
	// NodePrefix is the length of the nodes' network prefix.
	NodePrefix = 24
	// MaxNodes is how many nodes the address plan has room for.
	MaxNodes = 200
	// Gateway is where the nodes' default route points. Nobody answers there.
	Gateway = "10.245.0.254"
)

// NodeName is the name of the node with that number, counted from 1. The first one also carries the
// control plane.
func NodeName(number int) string { return "node-" + strconv.Itoa(number) }

// NodeNumber is the number in a node's name.
func NodeNumber(name string) (int, error) {
	digits, ok := strings.CutPrefix(name, "node-")
	number, err := strconv.Atoi(digits)
	if !ok || err != nil || number < 1 || number > MaxNodes || NodeName(number) != name {
		return 0, fmt.Errorf("%q is not a node: want node-1 to node-%d", name, MaxNodes)
	}
	return number, nil
}

// NodeIP is a node's address.
func NodeIP(number int) string { return fmt.Sprintf("10.245.0.%d", number) }

// NodePods is the range of a node's pods.
func NodePods(number int) string { return fmt.Sprintf("10.244.%d.0/24", number) }
