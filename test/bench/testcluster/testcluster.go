// Package testcluster is what benchmarks on the checkout's test cluster share: how their programs begin and end, the cluster
// with Refit installed on it, the namespace of the benchmark, and the daemon that is measured. It is for programs that run inside
// the cluster's network.
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
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/hack/democluster"
	"github.com/refit-project/refit/hack/install"
	"github.com/refit-project/refit/test/bench/report"
)

// tidyTimeout bounds the removal of what a benchmark has created, also after an interrupt.
const tidyTimeout = 4 * time.Minute

// Benchmark is one that measures Refit as it is installed.
type Benchmark struct {
	Name string
	// Types adds the types that it uses besides core/v1.
	Types []func(*runtime.Scheme) error
	// Testapp means that it needs the image of test/e2e/testapp.
	Testapp bool
	// Installed means that Refit is installed already.
	Installed bool
	// Measure returns what was found, also with an error if that is worth to be kept.
	Measure func(context.Context, *Cluster) (report.Findings, error)
}

// Main installs Refit, measures, removes the namespace of the benchmark, prints what was found and saves it. It ends the program
// if that fails.
func (b *Benchmark) Main() { Main(b.Name, b.run) }

func (b *Benchmark) run(ctx context.Context) (err error) {
	c, err := Find(b.Name)
	if err != nil {
		return err
	}
	if c.Images, err = install.Pushed(c.Root); err != nil {
		return err
	}
	if b.Testapp {
		if c.Testapp, err = c.testapp(); err != nil {
			return err
		}
	}
	if !b.Installed {
		c.Say("installing the manifests of deploy/")
		if err := install.Apply(ctx, c.Installation()); err != nil {
			return err
		}
	}
	if c.API, err = democluster.Connect(c.Kubeconfig, append(b.Types, accessTypes)...); err != nil {
		return err
	}
	found, err := b.Measure(ctx, c)
	if found != nil {
		found.End()
	}
	tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
	defer cancel()
	err = errors.Join(err, c.Clear(tidy))
	if found == nil {
		return err
	}
	return errors.Join(err, report.Finish(b.Name, found))
}

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
	// Root is the folder of the checkout, State the folder of the cluster.
	Root, State string
	Kubeconfig  string
	// Namespace is the benchmark's own.
	Namespace string
	// Images are those that hack/images.sh has pushed, Testapp the one of test/e2e/testapp among them, if it is needed.
	Images  []string
	Testapp string
	API     client.WithWatch

	benchmark string
	began     time.Time
}

// Find returns the cluster in whose network the program runs.
func Find(benchmark string) (*Cluster, error) {
	c := &Cluster{
		State: os.Getenv("REFIT_CLUSTER"), Kubeconfig: os.Getenv("KUBECONFIG"), Namespace: "refit-bench-" + benchmark,
		benchmark: benchmark, began: time.Now(),
	}
	if c.State == "" || c.Kubeconfig == "" {
		return nil, fmt.Errorf("run make bench-%s, or run this with .cluster/enter", benchmark)
	}
	c.Root = filepath.Dir(c.State)
	return c, nil
}

func (c *Cluster) testapp() (string, error) {
	i := slices.IndexFunc(c.Images, func(name string) bool { return strings.Contains(name, "/testapp:") })
	if i < 0 {
		return "", errors.New("the image testapp has not been pushed: run make bench-" + c.benchmark)
	}
	return c.Images[i], nil
}

// Installation is what to install the manifests of deploy/ with.
func (c *Cluster) Installation() install.Config {
	return install.Config{Root: c.Root, Kubectl: filepath.Join(c.State, "bin", "kubectl"), Images: c.Images}
}

// Socket is the socket of the container runtime of a node.
func (c *Cluster) Socket(node string) string {
	return filepath.Join(c.State, "nodes", node, "containerd.sock")
}

// AuditLog is the file of the API server's audit log.
func (c *Cluster) AuditLog() string { return filepath.Join(c.State, "logs", "audit.log") }

// Say prints a line with the seconds since the benchmark began.
func (c *Cluster) Say(format string, args ...any) {
	fmt.Printf("[%6.1fs] %s\n", time.Since(c.began).Seconds(), fmt.Sprintf(format, args...))
}
