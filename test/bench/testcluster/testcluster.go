// Package testcluster is what benchmarks on the checkout's test cluster share: how their programs begin and end, and the
// cluster with Refit installed on it. It is for programs that run inside the cluster's network.
package testcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/refit-project/refit/hack/install"
)

// Main runs a benchmark until it returns, or until the program is interrupted, and ends the program if it fails.
func Main(benchmark string, run func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench-%s: %v\n", benchmark, err)
		os.Exit(1)
	}
}

// Cluster is the checkout's test cluster.
type Cluster struct {
	// Root is the folder of the checkout, State that of the cluster.
	Root, State string
	Kubeconfig  string

	benchmark string
}

// Find returns the cluster in whose network the program runs.
func Find(benchmark string) (Cluster, error) {
	c := Cluster{State: os.Getenv("REFIT_CLUSTER"), Kubeconfig: os.Getenv("KUBECONFIG"), benchmark: benchmark}
	if c.State == "" || c.Kubeconfig == "" {
		return Cluster{}, fmt.Errorf("start test/bench/%s/run.sh, or run this with .cluster/enter", benchmark)
	}
	c.Root = filepath.Dir(c.State)
	return c, nil
}

// Images are those that hack/images.sh has pushed.
func (c Cluster) Images() ([]string, error) { return install.Pushed(c.Root) }

// Testapp is the image of the application in test/e2e/testapp among these.
func (c Cluster) Testapp(images []string) (string, error) {
	i := slices.IndexFunc(images, func(name string) bool { return strings.Contains(name, "/testapp:") })
	if i < 0 {
		return "", errors.New("the image testapp has not been pushed: start test/bench/" + c.benchmark + "/run.sh")
	}
	return images[i], nil
}

// Installation is what to install the manifests of deploy/ with.
func (c Cluster) Installation(images []string) install.Config {
	return install.Config{Root: c.Root, Kubectl: filepath.Join(c.State, "bin", "kubectl"), Images: images}
}

// Install installs the manifests of deploy/ with the images that hack/images.sh has pushed.
func (c Cluster) Install(ctx context.Context) error {
	images, err := c.Images()
	if err != nil {
		return err
	}
	return install.Apply(ctx, c.Installation(images))
}
