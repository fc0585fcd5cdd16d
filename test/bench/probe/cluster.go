package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/bench/probe/usage"
	"github.com/refit-project/refit/test/bench/testcluster"
)

const (
	podLabel = "bench"
	// containers of each pod with probes; one more runs the servers.
	containers   = 10
	setUpTimeout = 10 * time.Minute
	makers       = 8
)

// cluster is the checkout's own, seen from inside its network.
type cluster struct {
	*testcluster.Cluster
	http    *http.Client
	daemon  *testcluster.Daemon
	watched usage.Processes
}

func newCluster(in *testcluster.Cluster) *cluster {
	return &cluster{Cluster: in, http: &http.Client{Timeout: 10 * time.Second}}
}

// setUp recreates the namespace and finds the processes to measure.
func (c *cluster) setUp(ctx context.Context, kept *findings) (err error) {
	if err := c.Recreate(ctx); err != nil {
		return err
	}
	if kept.Kubelet, kept.Runtime, err = c.Versions(ctx); err != nil {
		return err
	}
	if c.daemon, err = c.Daemon(ctx); err != nil {
		return err
	}
	c.watched, err = usage.Find(ctx, c.State, testcluster.Node, c.daemon.PID)
	return err
}

// makePods returns when all are ready. With a scenario each container but the servers' has its probe as readiness probe.
func (c *cluster) makePods(ctx context.Context, count int, readiness *scenario) error {
	pods := make([]*corev1.Pod, count)
	for i := range pods {
		pods[i] = c.pod(fmt.Sprintf("p-%03d", i), readiness)
	}
	return c.create(ctx, pods)
}

// create returns when all the pods, and no others, are ready.
func (c *cluster) create(ctx context.Context, pods []*corev1.Pod) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(makers)
	for _, pod := range pods {
		group.Go(func() error { return c.CreatePod(groupCtx, pod) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("create pods: %w", err)
	}
	err := c.untilPods(ctx, func(found []corev1.Pod) bool {
		ready := 0
		for i := range found {
			if since, is := readySince(&found[i]); is && !since.IsZero() {
				ready++
			}
		}
		return ready == len(pods)
	})
	if err != nil {
		return fmt.Errorf("wait for %d pods to be ready: %w", len(pods), err)
	}
	return nil
}

// readySince is when the condition Ready has changed last, and whether it is True.
func readySince(pod *corev1.Pod) (time.Time, bool) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.LastTransitionTime.Time, condition.Status == corev1.ConditionTrue
		}
	}
	return time.Time{}, false
}

func (c *cluster) untilPods(ctx context.Context, done func([]corev1.Pod) bool) error {
	return testcluster.Await(ctx, time.Second, setUpTimeout, "pods", func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		err := c.API.List(ctx, pods, client.InNamespace(c.Namespace))
		return err == nil && done(pods.Items), err
	})
}

func (c *cluster) pod(name string, readiness *scenario) *corev1.Pod {
	container := func(name string, probe *corev1.Probe, args ...string) corev1.Container {
		return corev1.Container{Name: name, Image: c.Testapp, ImagePullPolicy: corev1.PullIfNotPresent, Args: args, ReadinessProbe: probe}
	}
	app := container("app", nil, "--http=:8080", "--tcp=:7000", "--grpc=:9000", "--state=/shared/state")
	app.VolumeMounts = []corev1.VolumeMount{{Name: "shared", MountPath: "/shared"}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace, Labels: map[string]string{podLabel: "probe"}},
		Spec: corev1.PodSpec{
			NodeName: testcluster.Node, AutomountServiceAccountToken: new(bool), EnableServiceLinks: new(bool), TerminationGracePeriodSeconds: new(int64(1)),
			Containers: []corev1.Container{app},
			Volumes:    []corev1.Volume{{Name: "shared", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
	for i := range containers {
		var probe *corev1.Probe
		if readiness != nil {
			probe = new(readiness.probe(i))
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container(fmt.Sprintf("c%d", i), probe))
	}
	return pod
}

// deletePods returns when all are gone.
func (c *cluster) deletePods(ctx context.Context) error {
	if err := c.API.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(c.Namespace)); err != nil {
		return fmt.Errorf("delete pods: %w", err)
	}
	return c.untilPods(ctx, func(pods []corev1.Pod) bool { return len(pods) == 0 })
}
