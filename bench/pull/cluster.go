package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/hack/place"
)

const (
	namespace = "refit-bench-pull"
	system    = "refit-system"
	patience  = 15 * time.Minute
)

// cluster is the checkout's own, of which one node pulls.
type cluster struct {
	api      client.WithWatch
	state    string
	node     string
	registry *registry
}

// openCluster makes the namespace and tells the node's containerd of the registry.
func openCluster(ctx context.Context, kubeconfig, state string, registry *registry) (*cluster, error) {
	api, err := place.Connect(kubeconfig, v1beta1.AddToScheme, appsv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	// The node in whose network this program is.
	c := &cluster{api: api, state: state, node: "node-1", registry: registry}
	err = api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("make namespace: %w", err)
	}
	text := fmt.Sprintf("server = \"http://%[1]s\"\n\n[host.\"http://%[1]s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", registry.host)
	if err := os.MkdirAll(c.hosts(), 0o755); err != nil {
		return nil, fmt.Errorf("tell containerd of the registry: %w", err)
	}
	if err := os.WriteFile(filepath.Join(c.hosts(), "hosts.toml"), []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("tell containerd of the registry: %w", err)
	}
	return c, nil
}

func (c *cluster) hosts() string {
	return filepath.Join(c.state, "nodes", c.node, "registry", c.registry.host)
}

func (c *cluster) tearDown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := c.api.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	return errors.Join(client.IgnoreNotFound(err), os.RemoveAll(c.hosts()))
}

// daemonPulls has the daemons pull so many images at once, and waits until they do.
func (c *cluster) daemonPulls(ctx context.Context, parallel int) error {
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "refit-daemon"}}
	if err := c.api.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return fmt.Errorf("get DaemonSet: %w", err)
	}
	const flag = "--max-workers-for-pull-image="
	container := &set.Spec.Template.Spec.Containers[0]
	container.Args = slices.DeleteFunc(container.Args, func(arg string) bool { return strings.HasPrefix(arg, flag) })
	container.Args = append(container.Args, fmt.Sprint(flag, parallel))
	if err := c.api.Update(ctx, set); err != nil {
		return fmt.Errorf("write DaemonSet: %w", err)
	}
	return c.until(ctx, "the daemons to be rolled out", func(ctx context.Context) (bool, error) {
		err := c.api.Get(ctx, client.ObjectKeyFromObject(set), set)
		is := set.Status
		return is.ObservedGeneration >= set.Generation && is.UpdatedNumberScheduled == is.DesiredNumberScheduled && is.NumberReady == is.DesiredNumberScheduled, err
	})
}

func (c *cluster) until(ctx context.Context, what string, done wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, done); err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
}

func (c *cluster) ctr(ctx context.Context, args ...string) error {
	argv := append([]string{"--address", filepath.Join(c.state, "nodes", c.node, "containerd.sock"), "--namespace", "k8s.io", "images"}, args...)
	out, err := exec.CommandContext(ctx, filepath.Join(c.state, "bin", "ctr"), argv...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr images %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// forget removes the images from the node, with their content.
func (c *cluster) forget(ctx context.Context) error {
	return c.ctr(ctx, append([]string{"rm", "--sync"}, c.registry.names()...)...)
}

// pullByCtr pulls all images with ctr, so many at a time.
func (c *cluster) pullByCtr(ctx context.Context, parallel int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, name := range c.registry.names() {
		group.Go(func() error {
			return c.ctr(ctx, "pull", "--hosts-dir", filepath.Dir(c.hosts()), name)
		})
	}
	return group.Wait()
}

// pullByJobs pulls all images with ImagePullJobs.
func (c *cluster) pullByJobs(ctx context.Context) error {
	jobs := make([]*v1beta1.ImagePullJob, len(c.registry.sizes))
	for i, name := range c.registry.names() {
		job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("image-%d", i)}}
		job.Spec.Image = name
		job.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: []string{c.node}}
		job.Spec.CompletionPolicy.Type = v1beta1.CompletionAlways
		if err := c.api.Create(ctx, job); err != nil {
			return fmt.Errorf("create ImagePullJob: %w", err)
		}
		jobs[i] = job
	}
	for _, job := range jobs {
		err := c.until(ctx, "ImagePullJob "+job.Name, func(ctx context.Context) (bool, error) {
			err := c.api.Get(ctx, client.ObjectKeyFromObject(job), job)
			if job.Status.Failed > 0 {
				return false, fmt.Errorf("ImagePullJob %s: %s", job.Name, job.Status.Message)
			}
			return job.Status.CompletionTime != nil, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// removeJobs deletes the jobs and waits until the node's NodeImage is empty.
func (c *cluster) removeJobs(ctx context.Context) error {
	if err := c.api.DeleteAllOf(ctx, &v1beta1.ImagePullJob{}, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("delete ImagePullJobs: %w", err)
	}
	return c.until(ctx, "the NodeImage to be empty", func(ctx context.Context) (bool, error) {
		object := &v1beta1.NodeImage{}
		err := c.api.Get(ctx, client.ObjectKey{Name: c.node}, object)
		return len(object.Spec.Images)+len(object.Status.ImageStatuses) == 0, err
	})
}

// generation and resource version tell writes of the spec from those of the status.
func (c *cluster) watchStatus(ctx context.Context) (stop func() int, err error) {
	object := &v1beta1.NodeImage{}
	if err := c.api.Get(ctx, client.ObjectKey{Name: c.node}, object); err != nil {
		return nil, fmt.Errorf("get NodeImage: %w", err)
	}
	events, err := c.api.Watch(ctx, &v1beta1.NodeImageList{}, client.MatchingFields{"metadata.name": c.node},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: object.ResourceVersion}})
	if err != nil {
		return nil, fmt.Errorf("watch NodeImage: %w", err)
	}
	writes := make(chan int)
	go func() {
		n, generation, uid := 0, object.Generation, types.UID(object.UID)
		for event := range events.ResultChan() {
			if is, ok := event.Object.(*v1beta1.NodeImage); ok && is.UID == uid {
				if is.Generation == generation {
					n++
				}
				generation = is.Generation
			}
		}
		writes <- n
	}()
	return func() int { events.Stop(); return <-writes }, nil
}
