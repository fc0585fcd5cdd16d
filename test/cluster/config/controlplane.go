// Package config renders the command lines and configuration files of the cluster's programs.
// It decides nothing at run time and touches no file.
package config

import (
	"fmt"

	"github.com/refit-project/refit/test/cluster/state"
)

// ControlPlane is what the programs of the control plane need to know.
type ControlPlane struct {
	State state.Dir
	// APIPort is the API server's port, the same in the cluster's network and on the machine's loopback.
	APIPort int
}

// APIServer is the URL at which every node reaches the API server.
func (c ControlPlane) APIServer() string {
	return fmt.Sprintf("https://%s:%d", state.NodeIP(1), c.APIPort)
}

// Etcd is etcd's command line.
func (c ControlPlane) Etcd() []string {
	return []string{
		"--name=etcd",
		"--data-dir=" + c.State.Path("etcd"),
		"--listen-client-urls=http://127.0.0.1:2379",
		"--advertise-client-urls=http://127.0.0.1:2379",
		"--listen-peer-urls=http://127.0.0.1:2380",
		"--log-level=warn",
		"--logger=zap",
		// A power cut may lose the cluster; waiting for the disk would make every test slower.
		"--unsafe-no-fsync",
	}
}

// APIServerArgs is kube-apiserver's command line.
func (c ControlPlane) APIServerArgs() []string {
	key := func(name string) string { return c.State.Path("pki", name) }
	return []string{
		"kube-apiserver",
		"--etcd-servers=http://127.0.0.1:2379",
		"--bind-address=0.0.0.0",
		fmt.Sprintf("--secure-port=%d", c.APIPort),
		"--advertise-address=" + state.NodeIP(1),
		"--service-cluster-ip-range=" + state.ServiceCIDR,
		"--allow-privileged=true",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--client-ca-file=" + key("ca.crt"),
		"--tls-cert-file=" + key("apiserver.crt"),
		"--tls-private-key-file=" + key("apiserver.key"),
		"--kubelet-certificate-authority=" + key("ca.crt"),
		"--kubelet-client-certificate=" + key("apiserver-kubelet.crt"),
		"--kubelet-client-key=" + key("apiserver-kubelet.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + key("service-account.crt"),
		"--service-account-signing-key-file=" + key("service-account.key"),
		"--requestheader-client-ca-file=" + key("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + key("front-proxy.crt"),
		"--proxy-client-key-file=" + key("front-proxy.key"),
		"--admission-control-config-file=" + c.AdmissionFile(),
		"--audit-policy-file=" + c.State.Path("config", "audit-policy.yaml"),
		"--audit-log-path=" + c.State.Path("logs", "audit.log"),
		// Megabytes. The tests read one file; the default would turn it over at 100.
		"--audit-log-maxsize=4000",
	}
}

// ControllerManager is kube-controller-manager's command line.
func (c ControlPlane) ControllerManager() []string {
	kubeconfig := c.State.Path("config", "controller-manager.kubeconfig")
	return []string{
		"kube-controller-manager",
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.State.Path("pki", "service-account.key"),
		"--root-ca-file=" + c.State.Path("pki", "ca.crt"),
		"--cluster-signing-cert-file=" + c.State.Path("pki", "ca.crt"),
		"--cluster-signing-key-file=" + c.State.Path("pki", "ca.key"),
	}
}

// Scheduler is kube-scheduler's command line.
func (c ControlPlane) Scheduler() []string {
	kubeconfig := c.State.Path("config", "scheduler.kubeconfig")
	return []string{
		"kube-scheduler",
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
	}
}

// AuditPolicy makes the audit log one of the records from which a test judges what was done: writes to
// our own objects, to pods and to their status with their bodies, other writes by name, and no reads.
func AuditPolicy() string {
	return `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get, list, watch]
- level: RequestResponse
  resources:
  - group: apps.kruise.io
  - group: refit.dev
- level: RequestResponse
  verbs: [create, update, patch, delete]
  resources:
  - group: ""
    resources: [pods, pods/status]
# Reviews, tokens and the control plane's own leases say nothing about anybody's work.
- level: None
  resources:
  - group: authentication.k8s.io
  - group: authorization.k8s.io
  - group: ""
    resources: [serviceaccounts/token]
- level: None
  namespaces: [kube-node-lease, kube-system]
  resources:
  - group: coordination.k8s.io
- level: Metadata
`
}
