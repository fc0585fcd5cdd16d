package lifecycle

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/refit-project/refit/test/cluster/config"
	"github.com/refit-project/refit/test/cluster/pki"
	"github.com/refit-project/refit/test/cluster/state"
)

// weight of the cluster beside builds and tests: control plane and nodes stand for machines of their own.
const weight = 8

func (c *Cluster) controlPlaneCgroup() string { return c.state.Name() + "/control-plane" }

// writeControlPlane writes all that the control plane reads and what a user finds in the state folder.
func (c *Cluster) writeControlPlane() error {
	if err := c.tree.Make(c.controlPlaneCgroup()); err != nil {
		return err
	}
	if err := c.tree.Weigh(c.state.Name(), weight); err != nil {
		return err
	}
	authority, err := c.issueControlPlane()
	if err != nil {
		return err
	}
	plane := c.controlPlane()
	files := map[string]string{
		c.state.Path("config", "audit-policy.yaml"): config.AuditPolicy(),
		plane.AdmissionFile():                       plane.Admission(),
		plane.WebhookKubeconfigFile():               plane.WebhookKubeconfig(),
		c.state.Path("registry"):                    c.registry() + "\n",
	}
	for path, content := range files {
		if err := state.WriteFile(path, content); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(c.state.Path("logs"), 0o755); err != nil {
		return err
	}
	for _, name := range []string{"controller-manager", "scheduler"} {
		if err := authority.Kubeconfig(c.state.Path("config", name+".kubeconfig"), plane.APIServer(), name); err != nil {
			return err
		}
	}
	// The same address on both sides: inside it is the API server itself, outside the gateway.
	server := fmt.Sprintf("https://127.0.0.1:%d", c.settings.APIPort)
	if err := authority.Kubeconfig(c.state.Path("kubeconfig"), server, "admin"); err != nil {
		return err
	}
	return c.writePrograms()
}

func (c *Cluster) issueControlPlane() (*pki.Authority, error) {
	dir := c.state.Path("pki")
	authority, err := pki.Open(dir, "ca")
	if err != nil {
		return nil, err
	}
	subjects := map[string]pki.Subject{
		"apiserver": {Name: "kube-apiserver", Hosts: []string{
			"127.0.0.1", "localhost", state.NodeIP(1), state.KubernetesService, "kubernetes",
			"kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		}},
		"apiserver-kubelet":  {Name: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}},
		"controller-manager": {Name: "system:kube-controller-manager"},
		"scheduler":          {Name: "system:kube-scheduler"},
		"kube-proxy":         {Name: "system:kube-proxy"},
		"service-account":    {Name: "service-account"},
		"admin":              {Name: "kubernetes-admin", Groups: []string{"system:masters"}},
	}
	for name, subject := range subjects {
		if err := authority.Issue(name, subject); err != nil {
			return nil, err
		}
	}
	for name, client := range map[string]string{"front-proxy-ca": "front-proxy", config.WebhookAuthority: config.WebhookClient} {
		of, err := pki.Open(dir, name)
		if err != nil {
			return nil, err
		}
		if err := of.Issue(client, pki.Subject{Name: client}); err != nil {
			return nil, err
		}
	}
	return authority, nil
}

// writePrograms fills the bin folder and writes the enter script.
func (c *Cluster) writePrograms() error {
	programs := map[string]string{
		"kubectl":    filepath.Join(c.settings.Programs.Kube, "kubectl"),
		"ctr":        filepath.Join(c.settings.Programs.Containerd, "ctr"),
		"containerd": filepath.Join(c.settings.Programs.Containerd, "containerd"),
		"runc":       filepath.Join(c.settings.Programs.Tools, "usr/sbin/runc"),
	}
	if err := os.MkdirAll(c.state.Path("bin"), 0o755); err != nil {
		return err
	}
	for name, target := range programs {
		link := c.state.Path("bin", name)
		if err := os.RemoveAll(link); err != nil {
			return err
		}
		if err := os.Symlink(target, link); err != nil {
			return err
		}
	}
	scripts := map[string]string{
		c.state.Path("bin", "cluster"): fmt.Sprintf("#!/bin/sh\nexec %q --checkout %q \"$@\"\n", c.starter(), c.state.Checkout()),
		c.state.Path("enter"): fmt.Sprintf("#!/bin/sh\n# Runs a command in the cluster's network.\nexec %q --checkout %q enter -- \"$@\"\n",
			c.starter(), c.state.Checkout()),
	}
	for path, content := range scripts {
		if err := state.WriteFile(path, content); err != nil {
			return err
		}
		if err := os.Chmod(path, 0o755); err != nil {
			return err
		}
	}
	return nil
}
