package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/hack/place"
)

const (
	namespace = "refit-bench-marker"
	// fakeNode selects kwok's nodes by their annotation.
	fakeNode = "kwok.x-k8s.io/node=fake"
	fake     = "refit-bench-marker" // label of the nodes
	makers   = 16                   // connections at once
)

// cluster is the checkout's own, seen from inside its network.
type cluster struct {
	api      client.Client
	state    string // the folder .cluster
	replicas *int32 // of the refit-manager that is installed, nil if there is none
}

func openCluster(kubeconfig, state string) (*cluster, error) {
	api, err := place.Connect(kubeconfig, appsv1.AddToScheme, v1alpha1.AddToScheme)
	if err != nil {
		return nil, err
	}
	return &cluster{api: api, state: state}, nil
}

// prepare brings the CRDs, and has an installed manager pause.
func (c *cluster) prepare(ctx context.Context) error {
	if err := c.clear(ctx); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, filepath.Join(c.state, "bin", "kubectl"), "apply", "--server-side", "--force-conflicts", "-f", "deploy/crd")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("apply deploy/crd: %w: %s", err, out)
	}
	if err := c.scale(ctx, new(int32)); err != nil {
		return err
	}
	if err := c.api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	certificate, err := newCertificate()
	if err != nil {
		return fmt.Errorf("make certificate: %w", err)
	}
	return c.api.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: certificateSecret}, Data: certificate})
}

// certificateSecret is the Secret with the certificate of the manager under test.
const certificateSecret = "webhook-certificate"

func (c *cluster) scale(ctx context.Context, replicas *int32) error {
	var installed appsv1.Deployment
	err := c.api.Get(ctx, client.ObjectKey{Namespace: "refit-system", Name: "refit-manager"}, &installed)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if c.replicas == nil {
		c.replicas = installed.Spec.Replicas
	}
	before := installed.DeepCopy()
	installed.Spec.Replicas = replicas
	return c.api.Patch(ctx, &installed, client.MergeFrom(before))
}

// tearDown leaves nothing of the benchmark in the cluster.
func (c *cluster) tearDown(ctx context.Context) error {
	err := c.clear(ctx)
	if c.replicas != nil {
		err = errors.Join(err, c.scale(ctx, c.replicas))
	}
	return err
}

func (c *cluster) clear(ctx context.Context) error {
	var pods corev1.PodList
	if err := c.api.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return err
	}
	err := each(ctx, len(pods.Items), func(ctx context.Context, i int) error {
		return client.IgnoreNotFound(c.api.Delete(ctx, &pods.Items[i], client.GracePeriodSeconds(0)))
	})
	if err != nil {
		return fmt.Errorf("delete pods: %w", err)
	}
	if err := c.release(ctx); err != nil {
		return err
	}
	var nodes corev1.NodeList
	if err := c.api.List(ctx, &nodes, client.HasLabels{fake}); err != nil {
		return err
	}
	err = each(ctx, len(nodes.Items), func(ctx context.Context, i int) error {
		told := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: nodes.Items[i].Name}}
		return errors.Join(client.IgnoreNotFound(c.api.Delete(ctx, &nodes.Items[i])), client.IgnoreNotFound(c.api.Delete(ctx, told)))
	})
	if err != nil {
		return fmt.Errorf("delete nodes: %w", err)
	}
	return await(ctx, time.Minute, "the namespace to be gone", func(ctx context.Context) (bool, error) {
		err := c.api.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		if apierrors.IsConflict(err) {
			return false, nil // it is being deleted
		}
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// release takes the finalizers off markers: the manager that would is not running any more.
func (c *cluster) release(ctx context.Context) error {
	var markers v1alpha1.PodProbeMarkerList
	err := c.api.List(ctx, &markers, client.InNamespace(namespace))
	if meta.IsNoMatchError(err) {
		return nil // there is no CRD yet
	}
	if err != nil {
		return fmt.Errorf("list markers: %w", err)
	}
	for i := range markers.Items {
		err := c.api.Patch(ctx, &markers.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("release marker: %w", err)
		}
	}
	return nil
}

func (c *cluster) makeNode(ctx context.Context, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		// Without kubernetes.io/os, so that no DaemonSet sends its pods there.
		Name: name, Labels: map[string]string{fake: "true"}, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
	}}
	node.Spec.Taints = []corev1.Taint{{Key: fake, Effect: corev1.TaintEffectNoSchedule}}
	room := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1000"), corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("1Ti")}
	node.Status.Capacity, node.Status.Allocatable = room, room
	return c.api.Create(ctx, node)
}

func (c *cluster) makePod(ctx context.Context, name, node string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "game"}}}
	pod.Spec = corev1.PodSpec{
		NodeName: node, AutomountServiceAccountToken: new(bool), EnableServiceLinks: new(bool),
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers:  []corev1.Container{{Name: "main", Image: "fake", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}},
	}
	return c.api.Create(ctx, pod)
}

// each works through n things, several at a time.
func each(ctx context.Context, n int, work func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(makers)
	for i := range n {
		group.Go(func() error { return work(ctx, i) })
	}
	return group.Wait()
}

func await(ctx context.Context, limit time.Duration, what string, done func(context.Context) (bool, error)) error {
	if err := wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, limit, true, done); err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
}
