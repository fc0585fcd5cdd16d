// Package cluster is the cluster that a run of chaos breaks: its parts, its nodes, Refit's installation on it, and the
// pods that are worked on. It causes no fault by itself.
package cluster

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
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
)

// The objects of an installation of Refit.
const (
	SystemNamespace = "refit-system"
	DaemonName      = "refit-daemon"
	ManagerName     = "refit-manager"
)

const (
	// CallTimeout bounds each call to a cluster that may be broken just then.
	CallTimeout  = 10 * time.Second
	pollInterval = 100 * time.Millisecond
)

// Cluster is the one that is broken.
type Cluster struct {
	client.WithWatch
	// Config of connections to the API server.
	Config *rest.Config
	// Nodes by name, sorted.
	Nodes []string
	// Image is testapp's, as the cluster can pull it.
	Image string

	state string
}

// Open connects to the cluster in the folder state, which is made by test/cluster.
func Open(state, image string) (*Cluster, error) {
	ctrllog.SetLogger(logr.Discard()) // or the library complains of its absence on the terminal
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(state, "kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst, config.Timeout = 1000, 1000, CallTimeout
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme), batchv1.AddToScheme(scheme), rbacv1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme), policyv1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme),
		v1alpha1.AddToScheme(scheme), v1beta1.AddToScheme(scheme), refitv1alpha1.AddToScheme(scheme)); err != nil {
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
	c := &Cluster{WithWatch: api, Config: config, Image: image, state: state}
	for _, entry := range entries {
		c.Nodes = append(c.Nodes, entry.Name())
	}
	slices.Sort(c.Nodes)
	return c, nil
}

// Run is a folder or socket that the node and its pods see below /run.
func (c *Cluster) Run(node string, elem ...string) string {
	return filepath.Join(append([]string{c.state, "nodes", node, "run"}, elem...)...)
}

// PodLogs is where the kubelet of a node keeps the logs of pods.
func (c *Cluster) PodLogs(node string) string {
	return filepath.Join(c.state, "nodes", node, "var", "log", "pods")
}

// Socket is the real containerd's.
func (c *Cluster) Socket(node string) string { return c.Run(node, "containerd", "containerd.sock") }

// AuditLog is the file of the API server's audit log.
func (c *Cluster) AuditLog() string { return filepath.Join(c.state, "logs", "audit.log") }

// Component breaks or mends a part of the cluster: see `cluster --help`.
func (c *Cluster) Component(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, filepath.Join(c.state, "bin", "cluster"), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cluster %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// RuntimeAnswers waits until containerd answers.
func (c *Cluster) RuntimeAnswers(ctx context.Context, node string) error {
	runtime, err := cri.New(cri.Config{Endpoint: c.Socket(node), CallTimeout: time.Second})
	if err != nil {
		return err
	}
	defer func() { _ = runtime.Close() }()
	return Until(ctx, "containerd answers", time.Minute, func(ctx context.Context) bool {
		_, err := runtime.Version(ctx)
		return err == nil
	})
}

// ServerAnswers waits until the API server does what it is asked, etcd included.
func (c *Cluster) ServerAnswers(ctx context.Context) error {
	return Until(ctx, "API server answers", 2*time.Minute, func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return c.Get(ctx, client.ObjectKey{Name: SystemNamespace}, &corev1.Namespace{}) == nil
	})
}

// ServiceAnswers waits until pods of every node reach the API server by its Service: kube-proxy learns late that it is back.
func (c *Cluster) ServiceAnswers(ctx context.Context) error {
	var service corev1.Service
	if err := c.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceDefault, Name: "kubernetes"}, &service); err != nil {
		return fmt.Errorf("find Service of the API server: %w", err)
	}
	for _, node := range c.Nodes {
		err := Until(ctx, "API server answers pods of "+node, RolloutTime, func(ctx context.Context) bool {
			return c.Component(ctx, "enter", "--node="+node, "--", filepath.Join(c.state, "bin", "kubectl"), "--kubeconfig="+filepath.Join(c.state, "kubeconfig"),
				"--server=https://"+service.Spec.ClusterIP, "--request-timeout=5s", "get", "--raw=/version") == nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// WebhooksAnswer waits until the API server asks the webhooks of Refit about a request: at a load of 50 on two cores it does so, and
// has read the CRDs, up to 25 s after it answers other requests.
func (c *Cluster) WebhooksAnswer(ctx context.Context) error {
	refused := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: Label}} // it names no container
	return Until(ctx, "webhooks answer", RolloutTime, func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return apierrors.IsBadRequest(c.Create(ctx, refused.DeepCopy(), client.DryRunAll))
	})
}

// NodeReady waits until kubelet reports. A status that is older than since says nothing.
func (c *Cluster) NodeReady(ctx context.Context, node string, since time.Time) error {
	return Until(ctx, "node is ready", 2*time.Minute, func(ctx context.Context) bool {
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
