package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/hack/democluster"
	"github.com/refit-project/refit/test/bench/probe/usage"
)

const (
	namespace = "refit-bench-probe"
	// node is where all pods of the benchmark are.
	node = "node-1"
	// metricsReader of deploy/daemonset lets a service account read the daemon's metrics.
	metricsReader = "refit-metrics-reader"
	podLabel      = "bench"
	// containers of each pod with probes; one more runs the servers.
	containers   = 10
	setUpTimeout = 10 * time.Minute
	makers       = 8
	poll         = 250 * time.Millisecond
)

// cluster is the checkout's own, seen from inside its network.
type cluster struct {
	api   client.Client
	state string // the folder .cluster
	image string // of the pods
	http  *http.Client

	daemon  *corev1.Pod
	token   string
	watched usage.Processes
}

func openCluster(kubeconfig, state, image string) (*cluster, error) {
	api, err := democluster.Connect(kubeconfig, rbacv1.AddToScheme, authenticationv1.AddToScheme, v1alpha1.AddToScheme)
	if err != nil {
		return nil, err
	}
	return &cluster{api: api, state: state, image: image, http: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // self-signed, in a test cluster
	}}}, nil
}

// setUp recreates the namespace and finds the processes to measure.
func (c *cluster) setUp(ctx context.Context, kept *findings) error {
	if err := c.tearDown(ctx); err != nil {
		return err
	}
	where := &corev1.Node{}
	if err := c.api.Get(ctx, client.ObjectKey{Name: node}, where); err != nil {
		return fmt.Errorf("find node: %w", err)
	}
	kept.Kubelet, kept.Runtime = where.Status.NodeInfo.KubeletVersion, where.Status.NodeInfo.ContainerRuntimeVersion
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
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(3 * 3600))}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: namespace, Namespace: namespace}}
	if err := c.api.SubResource("token").Create(ctx, account, token); err != nil {
		return fmt.Errorf("ask for a token: %w", err)
	}
	c.token = token.Status.Token
	daemons := &corev1.PodList{}
	err := c.api.List(ctx, daemons, client.InNamespace("refit-system"), client.MatchingLabels{"app.kubernetes.io/name": "refit-daemon"},
		client.MatchingFields{"spec.nodeName": node})
	if err != nil || len(daemons.Items) != 1 {
		return fmt.Errorf("find refit-daemon: %d pods of it on %s: %w", len(daemons.Items), node, err)
	}
	c.daemon = &daemons.Items[0]
	c.watched, err = usage.Find(ctx, c.state, node, c.daemon)
	return err
}

// tearDown leaves nothing of the benchmark in the cluster.
func (c *cluster) tearDown(ctx context.Context) error {
	for _, object := range []client.Object{
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
	} {
		err := wait.PollUntilContextTimeout(ctx, poll, setUpTimeout, true, func(ctx context.Context) (bool, error) {
			err := c.api.Delete(ctx, object)
			if apierrors.IsConflict(err) { // it is being deleted
				return false, nil
			}
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
		if err != nil {
			return fmt.Errorf("delete %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
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
		group.Go(func() error {
			return wait.PollUntilContextTimeout(groupCtx, poll, setUpTimeout, true, func(ctx context.Context) (bool, error) {
				err := c.api.Create(ctx, pod)
				if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "serviceaccount") {
					return false, nil // the default one comes a moment after its namespace
				}
				return err == nil, err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("make pods: %w", err)
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
	return wait.PollUntilContextTimeout(ctx, time.Second, setUpTimeout, true, func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		err := c.api.List(ctx, pods, client.InNamespace(namespace))
		return err == nil && done(pods.Items), err
	})
}

func (c *cluster) pod(name string, readiness *scenario) *corev1.Pod {
	container := func(name string, probe *corev1.Probe, args ...string) corev1.Container {
		return corev1.Container{Name: name, Image: c.image, ImagePullPolicy: corev1.PullIfNotPresent, Args: args, ReadinessProbe: probe}
	}
	app := container("app", nil, "--http=:8080", "--tcp=:7000", "--grpc=:9000", "--state=/shared/state")
	app.VolumeMounts = []corev1.VolumeMount{{Name: "shared", MountPath: "/shared"}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{podLabel: "probe"}},
		Spec: corev1.PodSpec{
			NodeName: node, AutomountServiceAccountToken: new(bool), EnableServiceLinks: new(bool), TerminationGracePeriodSeconds: new(int64(1)),
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
	if err := c.api.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("delete pods: %w", err)
	}
	return c.untilPods(ctx, func(pods []corev1.Pod) bool { return len(pods) == 0 })
}
