package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/hack/democluster"
	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube"
)

const (
	namespace     = "refit-bench-inplace"
	updateTimeout = 3 * time.Minute
	port          = 8080
	// serve and wait end when they are told to, as a container should: what is measured is not their grace period.
	serve   = `trap 'exit 0' TERM; echo ok >/tmp/index.html; httpd -f -p 8080 -h /tmp & wait $!`
	forever = `trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done`
)

// cluster is the checkout's own.
type cluster struct {
	api     client.WithWatch
	refit   inplacecli.Cluster
	state   string // the folder of the cluster
	node    string
	runtime *cri.Client // of the node
}

func openCluster(kubeconfig, state string) (*cluster, error) {
	api, err := democluster.Connect(kubeconfig)
	if err != nil {
		return nil, err
	}
	config, err := kube.Config(kubeconfig, "bench-inplace")
	if err != nil {
		return nil, err
	}
	own, err := kube.NewClient(config)
	return &cluster{api: api, refit: inplacecli.Cluster{Client: own}, state: state}, err
}

// prepare finds a node, makes the namespace, and has both images on the node.
func (c *cluster) prepare(ctx context.Context) error {
	var nodes corev1.NodeList
	err := c.api.List(ctx, &nodes)
	if err != nil || len(nodes.Items) == 0 {
		return fmt.Errorf("find a node: %w", err)
	}
	c.node = nodes.Items[0].Name
	if c.runtime, err = cri.New(cri.Config{Endpoint: filepath.Join(c.state, "nodes", c.node, "containerd.sock")}); err != nil {
		return err
	}
	err = c.api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make namespace: %w", err)
	}
	var pods []*corev1.Pod
	for i, image := range images {
		pod := newPod(fmt.Sprintf("pull-%d", i), c.node)
		pod.Spec.Containers[0].Image = image
		if err := c.create(ctx, pod); err != nil {
			return err
		}
		pods = append(pods, pod)
	}
	if err := c.awaitReady(ctx, pods); err != nil {
		return err
	}
	return each(ctx, len(pods), func(ctx context.Context, i int) error { return c.remove(ctx, pods[i].Name, 0) })
}

func (c *cluster) tearDown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := c.api.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), client.GracePeriodSeconds(0)); err != nil {
		return fmt.Errorf("delete pods: %w", err)
	}
	return client.IgnoreNotFound(c.api.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
}

func newPod(name, node string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{"level": "none"}}}
	container := func(name, script string) corev1.Container {
		return corev1.Container{Name: name, Image: images[0], ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sh", "-c", script}}
	}
	app := container("app", serve)
	app.Env = []corev1.EnvVar{{Name: "LEVEL", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['level']"}}}}
	pod.Spec = corev1.PodSpec{
		NodeName: node, AutomountServiceAccountToken: new(false), Containers: []corev1.Container{app, container("other", forever)},
		ReadinessGates: []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateInPlaceUpdateReady}},
	}
	return pod
}

// create makes a pod and opens its readiness gate, as the controller of a workload does.
func (c *cluster) create(ctx context.Context, pod *corev1.Pod) error {
	// The service account, without which no pod is let in, comes a moment after its namespace.
	err := await(ctx, "pod "+pod.Name+" to be made", func(ctx context.Context) (bool, error) {
		err := c.api.Create(ctx, pod)
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	open := fmt.Sprintf(`{"status":{"conditions":[{"type":"InPlaceUpdateReady","status":"True","lastTransitionTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
	return c.api.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, []byte(open)))
}

// stop has the container runtime stop and remove the pod's application, and waits until kubelet reports the next instance. A
// container that has ended and is still there makes kubelet wait for its back-off.
func (c *cluster) stop(ctx context.Context, name string) error {
	pod := &corev1.Pod{}
	if err := c.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
		return err
	}
	before := containerID(pod)
	id, err := identity.ParseContainerID(before)
	if err != nil {
		return err
	}
	if err := c.runtime.StopContainer(ctx, id.ID, corev1.DefaultTerminationGracePeriodSeconds*time.Second); err != nil {
		return fmt.Errorf("stop container of pod %s: %w", name, err)
	}
	if err := c.runtime.RemoveContainer(ctx, id.ID); err != nil {
		return fmt.Errorf("remove container of pod %s: %w", name, err)
	}
	return await(ctx, "the next instance of pod "+name, func(ctx context.Context) (bool, error) {
		err := c.api.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return err == nil && ready(pod) && containerID(pod) != before, err
	})
}

func containerID(pod *corev1.Pod) string {
	for i := range pod.Status.ContainerStatuses {
		if status := &pod.Status.ContainerStatuses[i]; status.Name == "app" {
			return status.ContainerID
		}
	}
	return ""
}

func (c *cluster) awaitReady(ctx context.Context, pods []*corev1.Pod) error {
	for _, pod := range pods {
		err := await(ctx, "pod "+pod.Name+" to be ready", func(ctx context.Context) (bool, error) {
			err := c.api.Get(ctx, client.ObjectKeyFromObject(pod), pod)
			return err == nil && ready(pod), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func ready(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

func await(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, updateTimeout, true, done); err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
}
