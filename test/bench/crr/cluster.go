package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/test/bench/crr/meter"
	"github.com/refit-project/refit/test/bench/crr/sight"
)

const (
	namespace = "refit-bench"
	// node is where the control plane of the test cluster is, and all pods of the benchmark.
	node = "node-1"
	// metricsReader of deploy/daemonset lets a service account read the daemon's metrics.
	metricsReader = "refit-metrics-reader"
	setUpTimeout  = 3 * time.Minute
	// connections at once while pods are made and deleted.
	makers = 8
)

// cluster is the checkout's own, seen from inside its network.
type cluster struct {
	api     client.WithWatch
	rest    *rest.Config
	http    *http.Client
	state   string // the folder .cluster
	image   string // of the pods
	runtime *cri.Client

	pods     *sight.Sights[*corev1.Pod]
	requests *sight.Sights[*v1beta1.ContainerRecreateRequest]
}

func openCluster(kubeconfig, state, image string) (*cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	ctrllog.SetLogger(logr.Discard())
	config.QPS = -1 // a hundred requests at once are what is measured
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), rbacv1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	api, err := client.NewWithWatch(config, client.Options{Scheme: scheme, HTTPClient: httpClient})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	runtimeClient, err := cri.New(cri.Config{Endpoint: filepath.Join(state, "nodes", node, "containerd.sock")})
	if err != nil {
		return nil, err
	}
	return &cluster{
		api: api, rest: config, http: httpClient, state: state, image: image, runtime: runtimeClient,
		pods: sight.New[*corev1.Pod](), requests: sight.New[*v1beta1.ContainerRecreateRequest](),
	}, nil
}

// setUp recreates the namespace and begins to watch it, in the group.
func (c *cluster) setUp(ctx context.Context, group *errgroup.Group) error {
	if err := c.tearDown(ctx); err != nil {
		return err
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: namespace, Namespace: namespace}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: metricsReader},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: namespace, Namespace: namespace}},
		},
	} {
		if err := c.api.Create(ctx, object); err != nil {
			return fmt.Errorf("make %T: %w", object, err)
		}
	}
	pods, err := c.watch(ctx, &corev1.PodList{})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	requests, err := c.watch(ctx, &v1beta1.ContainerRecreateRequestList{})
	if err != nil {
		return fmt.Errorf("watch requests: %w", err)
	}
	group.Go(func() error { return c.pods.Follow(ctx, pods) })
	group.Go(func() error { return c.requests.Follow(ctx, requests) })
	return nil
}

// watch begins where a list ends, and goes on where it was interrupted, as by the API server when a CRD changes.
func (c *cluster) watch(ctx context.Context, list client.ObjectList) (watch.Interface, error) {
	if err := c.api.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	source := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		return c.api.Watch(ctx, list, client.InNamespace(namespace), &client.ListOptions{Raw: &options})
	}
	return toolswatch.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{WatchFuncWithContext: source})
}

// others counts the pods on the node that are not of the benchmark.
func (c *cluster) others(ctx context.Context) (int, error) {
	there := &corev1.PodList{}
	if err := c.api.List(ctx, there, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return 0, fmt.Errorf("count the pods of %s: %w", node, err)
	}
	count := 0
	for _, pod := range there.Items {
		if pod.Namespace != namespace {
			count++
		}
	}
	return count, nil
}

// tearDown leaves nothing of the benchmark in the cluster.
func (c *cluster) tearDown(ctx context.Context) error {
	for _, object := range []client.Object{
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
	} {
		err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, setUpTimeout, true, func(ctx context.Context) (bool, error) {
			err := c.api.Delete(ctx, object)
			if apierrors.IsNotFound(err) {
				return true, nil
			}
			if apierrors.IsConflict(err) { // it is being deleted
				return false, nil
			}
			return false, err
		})
		if err != nil {
			return fmt.Errorf("delete %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// podKind is what the pods of a scenario are like.
type podKind struct {
	name  string
	args  []string // of the test application
	grace int64    // seconds
}

// makePods makes fresh pods and returns them when all are ready.
func (c *cluster) makePods(ctx context.Context, kind podKind, count int) ([]*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, setUpTimeout+time.Duration(count)*time.Second)
	defer cancel()
	pods := make([]*corev1.Pod, count)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(makers)
	for i := range pods {
		name := fmt.Sprintf("%s-%03d", kind.name, i)
		group.Go(func() error {
			ready := c.pods.Expect(name, func(s sight.Sighting[*corev1.Pod]) bool { return !s.Gone && app(s.Object).Ready })
			if err := c.makePod(ctx, kind, name); err != nil {
				return fmt.Errorf("make pod %s: %w", name, err)
			}
			seen, err := sight.Await(ctx, "pod "+name+" to be ready", ready)
			pods[i] = seen.Object
			return err
		})
	}
	return pods, group.Wait()
}

func (c *cluster) makePod(ctx context.Context, kind podKind, name string) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.PodSpec{
			NodeName: node, AutomountServiceAccountToken: new(bool), EnableServiceLinks: new(bool),
			TerminationGracePeriodSeconds: &kind.grace,
			Containers: []corev1.Container{{
				Name: "app", Image: c.image, ImagePullPolicy: corev1.PullIfNotPresent, Args: kind.args,
			}},
		},
	}
	return wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := c.api.Create(ctx, pod)
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "serviceaccount") {
			return false, nil // the default one comes a moment after its namespace
		}
		return err == nil, err
	})
}

// deletePods returns when kubelet has cleared them away.
func (c *cluster) deletePods(ctx context.Context, pods []*corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, setUpTimeout+time.Duration(len(pods))*time.Second)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(len(pods))
	for _, pod := range pods {
		gone := c.pods.Expect(pod.Name, func(s sight.Sighting[*corev1.Pod]) bool { return s.Gone })
		group.Go(func() error {
			if err := c.api.Delete(ctx, pod, client.GracePeriodSeconds(1)); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete pod: %w", err)
			}
			_, err := sight.Await(ctx, "pod "+pod.Name+" to be gone", gone)
			return err
		})
	}
	return group.Wait()
}

// app is the status of the one container of the benchmark's pods.
func app(pod *corev1.Pod) corev1.ContainerStatus {
	if len(pod.Status.ContainerStatuses) == 0 {
		return corev1.ContainerStatus{}
	}
	return pod.Status.ContainerStatuses[0]
}

// metered is where the daemon's cost can be read.
func (c *cluster) metered() meter.Config {
	return meter.Config{API: c.api, Node: node, Namespace: namespace, AuditLog: filepath.Join(c.state, "logs", "audit.log")}
}
