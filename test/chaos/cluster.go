package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
)

const (
	systemNamespace = "refit-system"
	daemonName      = "refit-daemon"
	managerName     = "refit-manager"
	// callTimeout bounds each call to a cluster that may be broken just then.
	callTimeout  = 10 * time.Second
	pollInterval = 100 * time.Millisecond
)

// cluster is the one that is broken.
type cluster struct {
	client.WithWatch
	config *rest.Config
	state  string
	nodes  []string
}

func openCluster(state string) (*cluster, error) {
	ctrllog.SetLogger(logr.Discard()) // or the library complains of its absence on the terminal
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(state, "kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst, config.Timeout = 1000, 1000, callTimeout
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme),
		v1alpha1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	api, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	entries, err := os.ReadDir(filepath.Join(state, "nodes"))
	if err != nil {
		return nil, fmt.Errorf("find nodes: %w", err)
	}
	c := &cluster{WithWatch: api, config: config, state: state}
	for _, entry := range entries {
		c.nodes = append(c.nodes, entry.Name())
	}
	slices.Sort(c.nodes)
	return c, nil
}

// run is a folder or socket that the node and its pods see below /run.
func (c *cluster) run(node string, elem ...string) string {
	return filepath.Join(append([]string{c.state, "nodes", node, "run"}, elem...)...)
}

// socket is the real containerd's.
func (c *cluster) socket(node string) string { return c.run(node, "containerd", "containerd.sock") }

func (c *cluster) auditLog() string { return filepath.Join(c.state, "logs", "audit.log") }

// component breaks or mends a part of the cluster: see `cluster --help`.
func (c *cluster) component(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, filepath.Join(c.state, "bin", "cluster"), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cluster %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// runtimeAnswers waits until containerd answers.
func (c *cluster) runtimeAnswers(ctx context.Context, node string) error {
	runtime, err := cri.New(cri.Config{Endpoint: c.socket(node), CallTimeout: time.Second})
	if err != nil {
		return err
	}
	defer func() { _ = runtime.Close() }()
	return until(ctx, "containerd answers", time.Minute, func(ctx context.Context) bool {
		_, err := runtime.Version(ctx)
		return err == nil
	})
}

// serverAnswers waits until the API server does what it is asked, etcd included.
func (c *cluster) serverAnswers(ctx context.Context) error {
	return until(ctx, "API server answers", 2*time.Minute, func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return c.Get(ctx, client.ObjectKey{Name: systemNamespace}, &corev1.Namespace{}) == nil
	})
}

// nodeReady waits until kubelet reports. A status that is older than since says nothing.
func (c *cluster) nodeReady(ctx context.Context, node string, since time.Time) error {
	return until(ctx, "node is ready", 2*time.Minute, func(ctx context.Context) bool {
		var found corev1.Node
		if c.Get(ctx, client.ObjectKey{Name: node}, &found) != nil {
			return false
		}
		return slices.ContainsFunc(found.Status.Conditions, func(condition corev1.NodeCondition) bool {
			return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue &&
				!condition.LastHeartbeatTime.Time.Before(since.Truncate(time.Second))
		})
	})
}

// errLate means that something did not happen in time.
var errLate = errors.New("not in time")

// until looks again and again.
func until(ctx context.Context, what string, limit time.Duration, done func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !done(ctx) {
		if err := pause(ctx, pollInterval); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("%s: %w: %s", what, errLate, limit)
			}
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
