package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/hack/install"
)

const (
	systemNamespace = "refit-system"
	installTimeout  = 10 * time.Minute
)

// cluster is the one under test.
type cluster struct {
	client.WithWatch
	config  *rest.Config
	program string // kubectl
	// state is the .cluster folder of a test cluster; empty for a cluster that somebody else has made.
	state string
	nodes []string // names of those that run refit-daemon
	minor int      // version of Kubernetes, as 37 for 1.37
	// deploy reads the manifests of deploy/.
	deploy install.Config
}

// connect opens the cluster, installs Refit and does so once for all tests.
var connect = sync.OnceValues(func() (*cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
	defer cancel()
	return open(ctx)
})

func open(ctx context.Context) (*cluster, error) {
	kubeconfig := os.Getenv("KUBECONFIG")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("KUBECONFIG: %w", err)
	}
	config.QPS, config.Burst = 1000, 1000
	log.SetLogger(klog.Background())
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c := &cluster{config: config, program: "kubectl"}
	state := filepath.Dir(kubeconfig)
	if _, err := os.Stat(filepath.Join(state, "bin", "cluster")); err == nil {
		c.state, c.program = state, filepath.Join(state, "bin", "kubectl")
	}
	if c.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if c.deploy, err = c.manifests(); err != nil {
		return nil, err
	}
	if c.minor, err = minorVersion(config); err != nil {
		return nil, err
	}
	if os.Getenv("REFIT_E2E_INSTALL") != "0" {
		if err := install.Apply(ctx, c.deploy); err != nil {
			return nil, err
		}
	}
	var daemons corev1.PodList
	if err := c.List(ctx, &daemons, daemonPods()...); err != nil {
		return nil, fmt.Errorf("find daemons: %w", err)
	}
	for _, pod := range daemons.Items {
		c.nodes = append(c.nodes, pod.Spec.NodeName)
	}
	if len(c.nodes) == 0 {
		return nil, errors.New("no refit-daemon runs on the cluster")
	}
	return c, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(
		corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), batchv1.AddToScheme(scheme), rbacv1.AddToScheme(scheme),
		authenticationv1.AddToScheme(scheme), admissionregistrationv1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), v1beta1.AddToScheme(scheme), refitv1alpha1.AddToScheme(scheme), policyv1.AddToScheme(scheme),
	)
}

// root of the checkout: tests run in their package's folder.
func root() string { return filepath.Join("..", "..") }

func (c *cluster) manifests() (install.Config, error) {
	config := install.Config{Root: root(), Kubectl: c.program, Images: strings.Fields(os.Getenv("REFIT_E2E_IMAGES"))}
	if len(config.Images) > 0 {
		return config, nil
	}
	// The state folder lies in the checkout whose images are in its registry.
	checkout := root()
	if c.state != "" {
		checkout = filepath.Dir(c.state)
	}
	var err error
	config.Images, err = install.Pushed(checkout)
	return config, err
}

func daemonPods() []client.ListOption {
	return []client.ListOption{client.InNamespace(systemNamespace), client.MatchingLabels{"app.kubernetes.io/name": "refit-daemon"}}
}

func managerPods() []client.ListOption {
	return []client.ListOption{client.InNamespace(systemNamespace), client.MatchingLabels{"app.kubernetes.io/name": "refit-manager"}}
}

// kubectl runs it with the text as its input and returns all it wrote. The error is its exit.
func (c *cluster) kubectl(ctx context.Context, input string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, c.program, args...)
	command.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	return out.String(), err
}

// component breaks or mends a part of a test cluster.
func (c *cluster) component(t *testing.T, env []string, args ...string) {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(c.state, "bin", "cluster"), args...)
	command.Env = append(os.Environ(), env...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("cluster %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// needsOwnCluster skips the test on a cluster that may not be broken.
func (c *cluster) needsOwnCluster(t *testing.T) {
	t.Helper()
	if c.state == "" {
		t.Skip("needs a cluster of test/cluster, whose parts may be stopped")
	}
}

// needsTwoNodes skips the test where there is one.
func (c *cluster) needsTwoNodes(t *testing.T) {
	t.Helper()
	if len(c.nodes) < 2 {
		t.Skip("needs two nodes: make cluster-up NODES=2")
	}
}
