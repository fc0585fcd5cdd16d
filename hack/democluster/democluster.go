// Package democluster finds the cluster of a demo or benchmark, which is the cluster of the checkout or one of the user, prepares it with Refit and
// connects to it.
package democluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/refit-project/refit/hack/install"
	"github.com/refit-project/refit/hack/step"
)

// Cluster is where a demo runs.
type Cluster struct {
	Root       string // of the checkout
	Own        bool   // the checkout's own cluster, else the user's
	Kubeconfig string
	Kubectl    string
}

var errNoRepository = errors.New("with KUBECONFIG set, IMAGE_REPO has to name a registry and folder that this machine can push to " +
	"and the cluster can pull from, as registry.example.com/refit; without KUBECONFIG a cluster is made here")

// Find takes the user's cluster if KUBECONFIG names one, else the checkout's, which need not be up.
func Find() (Cluster, error) {
	root, err := os.Getwd()
	if err != nil {
		return Cluster{}, err
	}
	if _, err := os.Stat(filepath.Join(root, "deploy", "crd")); err != nil {
		return Cluster{}, fmt.Errorf("run it in the root of the checkout: %w", err)
	}
	state := filepath.Join(root, ".cluster")
	own := Cluster{Root: root, Own: true, Kubeconfig: filepath.Join(state, "kubeconfig"), Kubectl: filepath.Join(state, "bin", "kubectl")}
	given := os.Getenv("KUBECONFIG")
	if given == "" || given == own.Kubeconfig {
		return own, nil
	}
	if os.Getenv("IMAGE_REPO") == "" {
		return Cluster{}, errNoRepository
	}
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		return Cluster{}, fmt.Errorf("find kubectl: %w", err)
	}
	return Cluster{Root: root, Kubeconfig: given, Kubectl: kubectl}, nil
}

// Prepare brings the checkout's cluster up, sets KUBECONFIG, builds the images, helm and kubectl-refit, and installs the chart with
// them. images are arguments of hack/images.sh. It returns what to install further things with.
func (c Cluster) Prepare(ctx context.Context, report *step.Reporter, images ...string) (install.Config, error) {
	if c.Own {
		err := report.Run(ctx, "cluster up",
			step.Command{Argv: []string{"test/cluster/cluster.sh", "up"}, Echo: true})
		if err != nil {
			return install.Config{}, err
		}
	}
	if err := os.Setenv("KUBECONFIG", c.Kubeconfig); err != nil {
		return install.Config{}, err
	}
	if err := report.Run(ctx, "images", step.Command{Argv: append([]string{"hack/images.sh"}, images...)}); err != nil {
		return install.Config{}, err
	}
	pushed, err := install.Pushed(c.Root)
	if err != nil {
		return install.Config{}, err
	}
	config := install.Config{Root: c.Root, Kubectl: c.Kubectl, Images: pushed}
	helm := filepath.Join(c.Programs(), "helm")
	for _, program := range []step.Command{
		{Argv: []string{"go", "build", "-o", helm, "-trimpath", "helm.sh/helm/v4/cmd/helm"}, Dir: filepath.Join(c.Root, "hack", "chart")},
		{Argv: []string{"go", "build", "-o", filepath.Join(c.Programs(), "kubectl-refit"), "-trimpath", "-ldflags=-s -w", "./cmd/kubectl-refit"}},
	} {
		program.Env = []string{"CGO_ENABLED=0", "GOGC=400"} // as the images, so that what all import is compiled once, and with less garbage collection in the compiler
		if err := report.Run(ctx, filepath.Base(program.Argv[3]), program); err != nil {
			return install.Config{}, err
		}
	}
	return config, report.Do("helm install of the packaged chart", func() error { return install.Chart(ctx, config, helm) })
}

// Programs is the folder with helm and kubectl-refit, for PATH.
func (c Cluster) Programs() string { return filepath.Join(c.Root, "dist", "bin") }
