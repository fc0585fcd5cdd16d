package demokit

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/hack/democluster"
	"github.com/refit-project/refit/hack/timeout"
	"github.com/refit-project/refit/internal/kubelet"
)

const (
	// changeTimeout is how long one change may take to show, on a machine of ordinary speed.
	changeTimeout = 3 * time.Minute
	// pollInterval is also the precision of the times that demos print of what they wait for.
	pollInterval = 20 * time.Millisecond
)

// Client is a client of the demo's cluster.
type Client struct{ client.WithWatch }

// Connect returns a client for core/v1 and what add brings into the scheme.
func (d *Demo) Connect(add ...func(*runtime.Scheme) error) (*Client, error) {
	api, err := democluster.Connect(d.Kubeconfig, add...)
	if err != nil {
		return nil, err
	}
	return &Client{WithWatch: api}, nil
}

// Until polls until done answers true, at most for the time that any change may take.
func Until(ctx context.Context, done wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, pollInterval, timeout.Scaled(changeTimeout), true, done)
}

// CreateNamespace creates it unless it exists.
func (c *Client) CreateNamespace(ctx context.Context, name string) error {
	err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}

// Remove deletes an object at once and waits until it is gone.
func (c *Client) Remove(ctx context.Context, object client.Object) error {
	err := Until(ctx, func(ctx context.Context) (bool, error) {
		err := c.Delete(ctx, object, client.GracePeriodSeconds(0))
		if apierrors.IsConflict(err) { // a namespace whose content is being deleted
			return false, nil
		}
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("delete %s: %w", object.GetName(), err)
	}
	return nil
}

// CreatePod creates a pod in a namespace that may be new: its service account, without which no pod is admitted, is created
// a moment after it.
func (c *Client) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	err := Until(ctx, func(ctx context.Context) (bool, error) {
		err := c.Create(ctx, pod)
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	return nil
}

// WaitUntilReady waits until the pod of that name is ready, is not being deleted and has another UID than not, which may be
// empty; it reads the pod into pod.
func (c *Client) WaitUntilReady(ctx context.Context, pod *corev1.Pod, not string) error {
	err := Until(ctx, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return err == nil && kubelet.Ready(pod) && pod.DeletionTimestamp == nil && string(pod.UID) != not, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait until pod %s is ready: %w", pod.Name, err)
	}
	return nil
}

// Recreate creates a pod and its namespace, instead of the pod and the other objects of an earlier demo, and waits until it is ready.
func (c *Client) Recreate(ctx context.Context, pod *corev1.Pod, others ...client.Object) error {
	if err := c.CreateNamespace(ctx, pod.Namespace); err != nil {
		return err
	}
	for _, object := range append(others, pod.DeepCopy()) {
		if err := c.Remove(ctx, object); err != nil {
			return err
		}
	}
	if err := c.CreatePod(ctx, pod); err != nil {
		return err
	}
	return c.WaitUntilReady(ctx, pod, "")
}

// WatchPod watches the pods of one name.
func (c *Client) WatchPod(ctx context.Context, namespace, name string) (watch.Interface, error) {
	pods, err := c.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		return nil, fmt.Errorf("watch pod %s: %w", name, err)
	}
	return pods, nil
}
