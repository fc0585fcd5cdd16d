package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/test/bench/crr/sight"
	"github.com/refit-project/refit/test/bench/testcluster"
)

// makers is how many pods are created at a time.
const makers = 8

// cluster is the checkout's own, seen from inside its network.
type cluster struct {
	*testcluster.Cluster
	rest    *rest.Config
	http    *http.Client
	runtime *cri.Client

	pods     *sight.Sights[*corev1.Pod]
	requests *sight.Sights[*v1beta1.ContainerRecreateRequest]
}

func openCluster(in *testcluster.Cluster) (*cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", in.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	runtimeClient, err := cri.New(cri.Config{Endpoint: in.Socket(testcluster.Node)})
	if err != nil {
		return nil, err
	}
	return &cluster{
		Cluster: in, rest: config, http: httpClient, runtime: runtimeClient,
		pods: sight.New[*corev1.Pod](), requests: sight.New[*v1beta1.ContainerRecreateRequest](),
	}, nil
}

// setUp recreates the namespace and begins to watch it, in the group.
func (c *cluster) setUp(ctx context.Context, group *errgroup.Group) error {
	if err := c.Recreate(ctx); err != nil {
		return err
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
	if err := c.API.List(ctx, list, client.InNamespace(c.Namespace)); err != nil {
		return nil, err
	}
	source := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		return c.API.Watch(ctx, list, client.InNamespace(c.Namespace), &client.ListOptions{Raw: &options})
	}
	return toolswatch.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{WatchFuncWithContext: source})
}

// others counts the pods on the node that are not of the benchmark.
func (c *cluster) others(ctx context.Context) (int, error) {
	there := &corev1.PodList{}
	if err := c.API.List(ctx, there, client.MatchingFields{"spec.nodeName": testcluster.Node}); err != nil {
		return 0, fmt.Errorf("count the pods of %s: %w", testcluster.Node, err)
	}
	count := 0
	for _, pod := range there.Items {
		if pod.Namespace != c.Namespace {
			count++
		}
	}
	return count, nil
}

// setUpTimeout bounds the creation and the deletion of pods.
func setUpTimeout(pods int) time.Duration { return 3*time.Minute + time.Duration(pods)*time.Second }

// podKind is what the pods of a scenario are like.
type podKind struct {
	name  string
	args  []string // of the test application
	grace int64    // seconds
}

// makePods makes fresh pods and returns them when all are ready.
func (c *cluster) makePods(ctx context.Context, kind podKind, count int) ([]*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, setUpTimeout(count))
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
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace},
		Spec: corev1.PodSpec{
			NodeName: testcluster.Node, AutomountServiceAccountToken: new(bool), EnableServiceLinks: new(bool),
			TerminationGracePeriodSeconds: &kind.grace,
			Containers: []corev1.Container{{
				Name: "app", Image: c.Testapp, ImagePullPolicy: corev1.PullIfNotPresent, Args: kind.args,
			}},
		},
	}
	return c.CreatePod(ctx, pod)
}

// deletePods returns when kubelet has cleared them away.
func (c *cluster) deletePods(ctx context.Context, pods []*corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, setUpTimeout(len(pods)))
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(len(pods))
	for _, pod := range pods {
		gone := c.pods.Expect(pod.Name, func(s sight.Sighting[*corev1.Pod]) bool { return s.Gone })
		group.Go(func() error {
			if err := c.API.Delete(ctx, pod, client.GracePeriodSeconds(1)); client.IgnoreNotFound(err) != nil {
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
