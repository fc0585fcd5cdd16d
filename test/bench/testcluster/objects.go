package testcluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Node has the control plane of the test cluster, and the pods of benchmarks.
	Node = "node-1"
	// System is the namespace of Refit.
	System = "refit-system"
	// PollInterval is how often Await looks if the benchmark needs no more precision.
	PollInterval = 250 * time.Millisecond
	// metricsReader of deploy/daemonset lets a service account read the daemon's metrics.
	metricsReader = "refit-metrics-reader"
	setUpTimeout  = 3 * time.Minute
	connections   = 16
)

func accessTypes(scheme *runtime.Scheme) error {
	return errors.Join(rbacv1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme))
}

// Recreate deletes what is left of an earlier run and creates the namespace, with a service account of the same name that may
// read the metrics of the daemon.
func (c *Cluster) Recreate(ctx context.Context) error {
	if err := c.Clear(ctx); err != nil {
		return err
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace, Namespace: c.Namespace}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: c.Namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: metricsReader},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: c.Namespace, Namespace: c.Namespace}},
		},
	} {
		if err := c.API.Create(ctx, object); err != nil {
			return fmt.Errorf("create %T: %w", object, err)
		}
	}
	return nil
}

// Clear deletes what Recreate has created, and the objects, and waits until they are gone.
func (c *Cluster) Clear(ctx context.Context, objects ...client.Object) error {
	for _, object := range append(objects,
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}},
	) {
		if err := Remove(ctx, c.API, object); err != nil {
			return err
		}
	}
	return nil
}

// Remove deletes an object and waits until it is gone.
func Remove(ctx context.Context, api client.Client, object client.Object, options ...client.DeleteOption) error {
	return Await(ctx, PollInterval, setUpTimeout, fmt.Sprintf("%T %s to be gone", object, object.GetName()), func(ctx context.Context) (bool, error) {
		err := api.Delete(ctx, object, options...)
		if apierrors.IsConflict(err) { // a namespace that is being deleted
			return false, nil
		}
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// CreatePod creates a pod in a namespace that may be new: its service account is created a moment after it.
func (c *Cluster) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	return Await(ctx, PollInterval, setUpTimeout, "pod "+pod.Name+" to be created", func(ctx context.Context) (bool, error) {
		err := c.API.Create(ctx, pod)
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "serviceaccount") {
			return false, nil
		}
		return err == nil, err
	})
}

// Versions returns the versions of kubelet and of the container runtime.
func (c *Cluster) Versions(ctx context.Context) (kubelet, runtime string, err error) {
	node := &corev1.Node{}
	if err := c.API.Get(ctx, client.ObjectKey{Name: Node}, node); err != nil {
		return "", "", fmt.Errorf("get node: %w", err)
	}
	return node.Status.NodeInfo.KubeletVersion, node.Status.NodeInfo.ContainerRuntimeVersion, nil
}

// Each works through n things, several at a time.
func Each(ctx context.Context, n int, work func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(connections)
	for i := range n {
		group.Go(func() error { return work(ctx, i) })
	}
	return group.Wait()
}

// Await looks again and again until it is done.
func Await(ctx context.Context, interval, limit time.Duration, what string, done wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, interval, limit, true, done); err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
}

// Numbers reads the value of a flag, as 1,10,40.
func Numbers(flag, text string) ([]int, error) {
	var all []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s %q: want numbers, as 1,10,40", flag, text)
		}
		all = append(all, n)
	}
	return all, nil
}
