package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/test/bench/testcluster"
)

const (
	updateTimeout = 3 * time.Minute
	port          = 8080
	// serve and wait end when they are told to, as a container should: what is measured is not their grace period.
	serve   = `trap 'exit 0' TERM; echo ok >/tmp/index.html; httpd -f -p 8080 -h /tmp & wait $!`
	forever = `trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done`
)

// cluster is the checkout's own.
type cluster struct {
	*testcluster.Cluster
	refit   inplacecli.Cluster
	runtime *cri.Client
}

func openCluster(in *testcluster.Cluster) (*cluster, error) {
	config, err := kube.Config(in.Kubeconfig, "bench-inplace")
	if err != nil {
		return nil, err
	}
	own, err := kube.NewClient(config)
	if err != nil {
		return nil, err
	}
	runtime, err := cri.New(cri.Config{Endpoint: in.Socket(testcluster.Node)})
	return &cluster{Cluster: in, refit: inplacecli.Cluster{Client: own}, runtime: runtime}, err
}

// prepare creates the namespace, and has both images on the node.
func (c *cluster) prepare(ctx context.Context) error {
	if err := c.Recreate(ctx); err != nil {
		return err
	}
	var pods []*corev1.Pod
	for i, image := range images {
		pod := c.newPod(fmt.Sprintf("pull-%d", i))
		pod.Spec.Containers[0].Image = image
		if err := c.create(ctx, pod); err != nil {
			return err
		}
		pods = append(pods, pod)
	}
	if err := c.awaitReady(ctx, pods); err != nil {
		return err
	}
	return testcluster.Each(ctx, len(pods), func(ctx context.Context, i int) error {
		return c.remove(ctx, pods[i].Name, client.GracePeriodSeconds(0))
	})
}

func (c *cluster) newPod(name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name, Annotations: map[string]string{"level": "none"}}}
	container := func(name, script string) corev1.Container {
		return corev1.Container{Name: name, Image: images[0], ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sh", "-c", script}}
	}
	app := container("app", serve)
	app.Env = []corev1.EnvVar{{Name: "LEVEL", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['level']"}}}}
	pod.Spec = corev1.PodSpec{
		NodeName: testcluster.Node, AutomountServiceAccountToken: new(false), Containers: []corev1.Container{app, container("other", forever)},
		ReadinessGates: []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateInPlaceUpdateReady}},
	}
	return pod
}

// create makes a pod and opens its readiness gate, as the controller of a workload does.
func (c *cluster) create(ctx context.Context, pod *corev1.Pod) error {
	if err := c.CreatePod(ctx, pod); err != nil {
		return err
	}
	open := fmt.Sprintf(`{"status":{"conditions":[{"type":"InPlaceUpdateReady","status":"True","lastTransitionTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
	return c.API.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, []byte(open)))
}

// stop has the container runtime stop and remove the pod's application, and waits until kubelet reports the next instance. A
// container that has ended and is still there makes kubelet wait for its back-off.
func (c *cluster) stop(ctx context.Context, name string) error {
	pod := &corev1.Pod{}
	if err := c.API.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, pod); err != nil {
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
		err := c.API.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return err == nil && ready(pod) && containerID(pod) != before, err
	})
}

func containerID(pod *corev1.Pod) string {
	if status := kubelet.StatusOf(pod, "app"); status != nil {
		return status.ContainerID
	}
	return ""
}

func (c *cluster) awaitReady(ctx context.Context, pods []*corev1.Pod) error {
	for _, pod := range pods {
		err := await(ctx, "pod "+pod.Name+" to be ready", func(ctx context.Context) (bool, error) {
			err := c.API.Get(ctx, client.ObjectKeyFromObject(pod), pod)
			return err == nil && ready(pod), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func ready(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && kubelet.Ready(pod) }

func await(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	return testcluster.Await(ctx, 50*time.Millisecond, updateTimeout, what, done)
}
