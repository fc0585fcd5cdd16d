package fakenodes

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/hack/democluster"
	"github.com/refit-project/refit/test/bench/testcluster"
)

// Cluster is the checkout's own, seen from inside its network.
type Cluster struct {
	API client.Client
	// Name of the benchmark's namespace, of the label of its nodes, and of their taint.
	Name string

	kubeconfig, state string
	replicas          *int32 // of the refit-manager that is installed, nil if there is none
}

// Open connects to the cluster with a state folder, .cluster of the checkout.
func Open(name, kubeconfig, state string, add ...func(*runtime.Scheme) error) (*Cluster, error) {
	api, err := democluster.Connect(kubeconfig, append(add, appsv1.AddToScheme)...)
	if err != nil {
		return nil, err
	}
	return &Cluster{API: api, Name: name, kubeconfig: kubeconfig, state: state}, nil
}

// Prepare applies the CRDs, scales an installed refit-manager to 0, and makes the namespace.
func (c *Cluster) Prepare(ctx context.Context) error {
	for _, args := range [][]string{
		{"apply", "--server-side", "--force-conflicts", "-f", "deploy/crd"}, {"wait", "--for=condition=Established", "--timeout=1m", "customresourcedefinitions", "--all"},
	} {
		if out, err := exec.CommandContext(ctx, filepath.Join(c.state, "bin", "kubectl"), args...).CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl %s: %w: %s", args[0], err, out)
		}
	}
	if err := c.scale(ctx, new(int32)); err != nil {
		return err
	}
	if err := c.API.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Name}}); err != nil {
		return err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil) // nothing calls the webhooks here
	if err != nil {
		return fmt.Errorf("create certificate: %w", err)
	}
	return c.API.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.Name, Name: certificateSecret}, Data: map[string][]byte{"tls.crt": certificate, "tls.key": key}})
}

// certificateSecret is the Secret with the certificate of the manager under test.
const certificateSecret = "webhook-certificate"

func (c *Cluster) scale(ctx context.Context, replicas *int32) error {
	var installed appsv1.Deployment
	err := c.API.Get(ctx, client.ObjectKey{Namespace: "refit-system", Name: "refit-manager"}, &installed)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if c.replicas == nil {
		c.replicas = installed.Spec.Replicas
	}
	before := installed.DeepCopy()
	installed.Spec.Replicas = replicas
	return c.API.Patch(ctx, &installed, client.MergeFrom(before))
}

// Restore lets the refit-manager that was scaled to 0 run again.
func (c *Cluster) Restore(ctx context.Context) error {
	if c.replicas == nil {
		return nil
	}
	return c.scale(ctx, c.replicas)
}

// DeletePods deletes the pods of the benchmark.
func (c *Cluster) DeletePods(ctx context.Context) error {
	var pods corev1.PodList
	if err := c.API.List(ctx, &pods, client.InNamespace(c.Name)); err != nil {
		return err
	}
	err := testcluster.Each(ctx, len(pods.Items), func(ctx context.Context, i int) error {
		return client.IgnoreNotFound(c.API.Delete(ctx, &pods.Items[i], client.GracePeriodSeconds(0)))
	})
	if err != nil {
		return fmt.Errorf("delete pods: %w", err)
	}
	return nil
}

// DeleteNodes deletes the nodes of the benchmark, and what the function deletes for each.
func (c *Cluster) DeleteNodes(ctx context.Context, also func(ctx context.Context, node string) error) error {
	var nodes corev1.NodeList
	if err := c.API.List(ctx, &nodes, client.HasLabels{c.Name}); err != nil {
		return err
	}
	err := testcluster.Each(ctx, len(nodes.Items), func(ctx context.Context, i int) error {
		err := client.IgnoreNotFound(c.API.Delete(ctx, &nodes.Items[i]))
		if also != nil {
			err = errors.Join(err, also(ctx, nodes.Items[i].Name))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("delete nodes: %w", err)
	}
	return nil
}

// DeleteNamespace deletes the namespace of the benchmark and waits until it is gone.
func (c *Cluster) DeleteNamespace(ctx context.Context) error {
	return testcluster.Remove(ctx, c.API, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Name}})
}

// CreateNode creates a node that kwok simulates. No other pods are scheduled to it.
func (c *Cluster) CreateNode(ctx context.Context, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		// Without kubernetes.io/os, so that no DaemonSet sends its pods there.
		Name: name, Labels: map[string]string{c.Name: "true"}, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
	}}
	node.Spec.Taints = []corev1.Taint{{Key: c.Name, Effect: corev1.TaintEffectNoSchedule}}
	capacity := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1000"), corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("1Ti")}
	node.Status.Capacity, node.Status.Allocatable = capacity, capacity
	return c.API.Create(ctx, node)
}

// StartKwok starts the program that simulates the nodes and their kubelets. Stages is the directory kustomize/stage of kwok.
func (c *Cluster) StartKwok(ctx context.Context, program, stages string) (*Process, error) {
	args := []string{"--kubeconfig=" + c.kubeconfig, "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake", "--cidr=10.128.0.0/16"}
	for _, stage := range []string{"node/fast/node-initialize", "node/heartbeat/node-heartbeat", "pod/fast/pod-ready", "pod/fast/pod-delete"} {
		args = append(args, "--config="+filepath.Join(stages, stage+".yaml"))
	}
	return Start(ctx, nil, program, args...)
}

// Follow returns a cache of the pods of the benchmark and of other kinds. Lists of thousands of objects, several times a second,
// would take from the manager what the benchmark measures. It runs until ctx ends. Objects that it returns must not be changed.
func (c *Cluster) Follow(ctx context.Context, kinds ...client.Object) (cache.Cache, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	followed, err := cache.New(config, cache.Options{
		Scheme: c.API.Scheme(), DefaultUnsafeDisableDeepCopy: new(true), DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Namespaces: map[string]cache.Config{c.Name: {}}}},
	})
	if err != nil {
		return nil, fmt.Errorf("make cache: %w", err)
	}
	go func() { _ = followed.Start(ctx) }() // until ctx ends
	for _, object := range append([]client.Object{&corev1.Pod{}}, kinds...) {
		if _, err := followed.GetInformer(ctx, object); err != nil {
			return nil, fmt.Errorf("follow %T: %w", object, err)
		}
	}
	if !followed.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("follow pods: %w", context.Cause(ctx))
	}
	return followed, nil
}
