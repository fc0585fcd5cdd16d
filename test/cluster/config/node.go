package config

import (
	"fmt"
	"strings"

	"github.com/refit-project/refit/test/cluster/state"
)

// Node is what the programs of one node need to know.
type Node struct {
	State  state.Dir
	Number int
	// APIServer is the API server's URL, Registry the host:port of the image registry.
	APIServer, Registry string
	// Runc is the path of runc, CNIPlugins the folder of the network plugins.
	Runc, CNIPlugins string
	// RestrictOOMScore is set where the machine lets nobody lower an oom_score_adj (no CAP_SYS_RESOURCE).
	RestrictOOMScore bool
	// FeatureGates are the kubelet's, as "Name=true" each; CRISocket is the runtime socket it uses.
	FeatureGates []string
	CRISocket    string
}

const (
	// ContainerdSocket is where the node's programs and pods see containerd.
	ContainerdSocket = "/run/containerd/containerd.sock"
	// SandboxImage is the image of every pod's first container.
	SandboxImage = "registry.k8s.io/pause:3.10"
)

// Name is the node's name.
func (n Node) Name() string { return state.NodeName(n.Number) }

// CgroupRoot is the cgroup below which the node's pods are.
func (n Node) CgroupRoot() string { return n.State.Name() + "/" + n.Name() }

// Path is a path in the node's folder.
func (n Node) Path(elem ...string) string { return n.State.Node(n.Name(), elem...) }

// Containerd is containerd's configuration file.
func (n Node) Containerd() string {
	return fmt.Sprintf(`version = 3
root = %q
state = "/run/containerd"

[grpc]
  address = %q

[plugins."io.containerd.internal.v1.opt"]
  path = %q

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = %q
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = %q

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = %t
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = [%q]
    conf_dir = %q
    use_internal_loopback = true
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        BinaryName = %q
        SystemdCgroup = false
`, n.Path("containerd"), ContainerdSocket, n.Path("opt"), SandboxImage, n.Path("registry"),
		n.RestrictOOMScore, n.CNIPlugins, n.Path("cni"), n.Runc)
}

// RegistryHosts is the hosts.toml that sends pulls from every registry there is to ours.
func (n Node) RegistryHosts() string {
	return fmt.Sprintf("server = \"http://%[1]s\"\n\n[host.\"http://%[1]s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", n.Registry)
}

// CNI is the network configuration of the node's pods. Each plugin is started twice for each pod; without portmap pods have no hostPort.
func (n Node) CNI() string {
	return fmt.Sprintf(`{
  "cniVersion": "1.0.0",
  "name": "refit",
  "plugins": [
    {
      "type": "ptp",
      "ipam": {
        "type": "host-local",
        "ranges": [[{"subnet": %q}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": %q
      }
    }
  ]
}
`, state.NodePods(n.Number), n.Path("ipam"))
}

// Kubelet is the kubelet's configuration file.
func (n Node) Kubelet() string {
	socket := n.CRISocket
	if socket == "" {
		socket = ContainerdSocket
	}
	var gates strings.Builder
	for _, gate := range n.FeatureGates {
		name, value, _ := strings.Cut(gate, "=")
		fmt.Fprintf(&gates, "\n  %s: %s", name, value)
	}
	featureGates := ""
	if gates.Len() > 0 {
		featureGates = "featureGates:" + gates.String() + "\n"
	}
	key := func(name string) string { return n.State.Path("pki", name) }
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://%s
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %q}
authorization: {mode: Webhook}
tlsCertFile: %q
tlsPrivateKeyFile: %q
clusterDomain: cluster.local
clusterDNS: [%q]
resolvConf: ""
cgroupDriver: cgroupfs
cgroupRoot: %q
failCgroupV1: false
enforceNodeAllocatable: []
failSwapOn: false
makeIPTablesUtilChains: false
# The images of a test are few; the disk is the developer's and may be nearly full. The disk of the images (NODE_DISK) may be full on purpose.
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard:
  memory.available: 50Mi
  nodefs.available: 1%%
  nodefs.inodesFree: 1%%
volumePluginDir: /var/lib/kubelet/volume-plugins
staticPodPath: /var/lib/kubelet/manifests
%s`, socket, key("ca.crt"), key(n.Name()+".crt"), key(n.Name()+".key"), state.DNSService,
		"/"+n.CgroupRoot(), featureGates)
}

// KubeletArgs is the kubelet's command line.
func (n Node) KubeletArgs() []string {
	return []string{
		"kubelet",
		"--config=" + n.Path("config", "kubelet.yaml"),
		"--kubeconfig=" + n.Path("config", "kubelet.kubeconfig"),
		"--root-dir=/var/lib/kubelet",
		"--hostname-override=" + n.Name(),
		"--node-ip=" + state.NodeIP(n.Number),
	}
}

// ProxyArgs is kube-proxy's command line.
func (n Node) ProxyArgs() []string {
	return []string{
		"kube-proxy",
		"--kubeconfig=" + n.Path("config", "kube-proxy.kubeconfig"),
		"--proxy-mode=iptables",
		"--hostname-override=" + n.Name(),
		"--cluster-cidr=" + state.PodCIDR,
		// The sizes of the connection table belong to the machine and cannot be set from here.
		"--conntrack-max-per-core=0",
		"--conntrack-tcp-timeout-established=0",
		"--conntrack-tcp-timeout-close-wait=0",
	}
}
