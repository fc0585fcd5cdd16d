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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/bench/testcluster"
)

const patience = 15 * time.Minute

// cluster is the checkout's own, whose node-1 pulls: this program is in its network.
type cluster struct {
	*testcluster.Cluster
	registry *registry
	args     []string // of the daemon, before they were changed
}

// prepare creates the namespace and configures the registry in the containerd of the node.
func (c *cluster) prepare(ctx context.Context) error {
	if err := c.Recreate(ctx); err != nil {
		return err
	}
	text := fmt.Sprintf("server = \"http://%[1]s\"\n\n[host.\"http://%[1]s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", c.registry.host)
	if err := os.MkdirAll(c.hosts(), 0o755); err != nil {
		return fmt.Errorf("configure containerd: %w", err)
	}
	if err := os.WriteFile(filepath.Join(c.hosts(), "hosts.toml"), []byte(text), 0o600); err != nil {
		return fmt.Errorf("configure containerd: %w", err)
	}
	return nil
}

func (c *cluster) hosts() string {
	return filepath.Join(c.State, "nodes", testcluster.Node, "registry", c.registry.host)
}

func (c *cluster) tearDown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return errors.Join(os.RemoveAll(c.hosts()), c.restoreDaemon(ctx))
}

const workersFlag = "--max-workers-for-pull-image="

// daemonPulls has the daemons pull so many images at once, and waits until they do.
func (c *cluster) daemonPulls(ctx context.Context, parallel int) error {
	var set appsv1.DaemonSet
	err := c.changeDaemon(ctx, &set, func(args []string) []string {
		if c.args == nil {
			c.args = slices.Clone(args)
		}
		args = slices.DeleteFunc(args, func(arg string) bool { return strings.HasPrefix(arg, workersFlag) })
		return append(args, fmt.Sprint(workersFlag, parallel))
	})
	if err != nil {
		return err
	}
	return c.until(ctx, "the daemons to be rolled out", func(ctx context.Context) (bool, error) {
		err := c.API.Get(ctx, client.ObjectKeyFromObject(&set), &set)
		is := set.Status
		return is.ObservedGeneration >= set.Generation && is.UpdatedNumberScheduled == is.DesiredNumberScheduled && is.NumberReady == is.DesiredNumberScheduled, err
	})
}

// restoreDaemon gives the daemons the arguments that they had: kubectl apply refuses to change what another has changed.
func (c *cluster) restoreDaemon(ctx context.Context) error {
	if c.args == nil {
		return nil
	}
	var set appsv1.DaemonSet
	return c.changeDaemon(ctx, &set, func([]string) []string { return c.args })
}

func (c *cluster) changeDaemon(ctx context.Context, set *appsv1.DaemonSet, change func(args []string) []string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := c.API.Get(ctx, client.ObjectKey{Namespace: testcluster.System, Name: "refit-daemon"}, set); err != nil {
			return fmt.Errorf("get DaemonSet: %w", err)
		}
		container := &set.Spec.Template.Spec.Containers[0]
		container.Args = change(container.Args)
		return c.API.Update(ctx, set)
	})
}

func (c *cluster) until(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	return testcluster.Await(ctx, 20*time.Millisecond, patience, what, done)
}

func (c *cluster) ctr(ctx context.Context, args ...string) error {
	_, err := c.ctrOutput(ctx, args...)
	return err
}

func (c *cluster) ctrOutput(ctx context.Context, args ...string) (string, error) {
	argv := append([]string{"--address", c.Socket(testcluster.Node), "--namespace", "k8s.io"}, args...)
	out, err := exec.CommandContext(ctx, filepath.Join(c.State, "bin", "ctr"), argv...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// forget removes the images from the node and waits until their content is gone: a layer that stays is not pulled again.
//
// containerd's CRI plugin gives each image two more names, one with its digest and one that is the digest of its
// configuration, in its own time. Each of them keeps the layers.
func (c *cluster) forget(ctx context.Context) error {
	return c.until(ctx, "the layers to leave the node", func(ctx context.Context) (bool, error) {
		present, err := c.ctrOutput(ctx, "images", "ls", "--quiet")
		if err != nil {
			return false, err
		}
		if ours := c.registry.among(strings.Fields(present)); len(ours) > 0 {
			return false, c.ctr(ctx, append([]string{"images", "rm", "--sync"}, ours...)...)
		}
		content, err := c.ctrOutput(ctx, "content", "ls", "--quiet")
		return !c.registry.hasLayer(strings.Fields(content)), err
	})
}

// pullByCtr pulls all images with ctr, so many at a time.
func (c *cluster) pullByCtr(ctx context.Context, parallel int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, name := range c.registry.names() {
		group.Go(func() error {
			return c.ctr(ctx, "images", "pull", "--hosts-dir", filepath.Dir(c.hosts()), name)
		})
	}
	return group.Wait()
}

// pullByJobs pulls all images with ImagePullJobs.
func (c *cluster) pullByJobs(ctx context.Context) error {
	jobs := make([]*v1beta1.ImagePullJob, len(c.registry.images))
	for i, name := range c.registry.names() {
		job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: fmt.Sprintf("image-%d", i)}}
		job.Spec.Image = name
		job.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: []string{testcluster.Node}}
		job.Spec.CompletionPolicy.Type = v1beta1.CompletionAlways
		if err := c.API.Create(ctx, job); err != nil {
			return fmt.Errorf("create ImagePullJob: %w", err)
		}
		jobs[i] = job
	}
	for _, job := range jobs {
		err := c.until(ctx, "ImagePullJob "+job.Name, func(ctx context.Context) (bool, error) {
			err := c.API.Get(ctx, client.ObjectKeyFromObject(job), job)
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
	if err := c.API.DeleteAllOf(ctx, &v1beta1.ImagePullJob{}, client.InNamespace(c.Namespace)); err != nil {
		return fmt.Errorf("delete ImagePullJobs: %w", err)
	}
	return c.until(ctx, "the NodeImage to be empty", func(ctx context.Context) (bool, error) {
		object := &v1beta1.NodeImage{}
		err := c.API.Get(ctx, client.ObjectKey{Name: testcluster.Node}, object)
		return len(object.Spec.Images)+len(object.Status.ImageStatuses) == 0, err
	})
}

// generation and resource version tell writes of the spec from writes of the status.
func (c *cluster) watchStatus(ctx context.Context) (stop func() int, err error) {
	object := &v1beta1.NodeImage{}
	if err := c.API.Get(ctx, client.ObjectKey{Name: testcluster.Node}, object); err != nil {
		return nil, fmt.Errorf("get NodeImage: %w", err)
	}
	events, err := c.API.Watch(ctx, &v1beta1.NodeImageList{}, client.MatchingFields{"metadata.name": testcluster.Node},
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
