package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/bench/testcluster"
)

const patience = 3 * time.Minute

// program is one that is measured: a container of the pods with its name as a label.
type program struct{ name, container string }

var (
	daemon  = program{"refit-daemon", "daemon"}
	manager = program{"refit-manager", "manager"}
	sidecar = program{"refit-sidecar", "refit-sidecar"}
)

// cluster is the checkout's own, seen from inside its network.
type cluster struct{ *testcluster.Cluster }

// setUp recreates the namespace, with pods to restart and one with a sidecar.
func (c *cluster) setUp(ctx context.Context, pods int) error {
	if err := c.Recreate(ctx); err != nil {
		return err
	}
	for _, file := range []string{"10-rbac.yaml", "30-config.yaml"} {
		if err := c.apply(ctx, filepath.Join("sidecar", file)); err != nil {
			return err
		}
	}
	all := make([]*corev1.Pod, 0, pods+1)
	for i := range pods {
		pod := c.pod(podName(i), corev1.Container{Name: "app", Image: c.Testapp, ImagePullPolicy: corev1.PullIfNotPresent}, web())
		pod.Labels = map[string]string{probed: "true"}
		all = append(all, pod)
	}
	beside, err := c.sidecarPod()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, pod := range append(all, beside) {
		group.Go(func() error { return c.start(ctx, pod) })
	}
	return group.Wait()
}

func podName(i int) string { return fmt.Sprintf("web-%03d", i) }

func (c *cluster) pod(name string, containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName: testcluster.Node, AutomountServiceAccountToken: new(bool), EnableServiceLinks: new(bool), TerminationGracePeriodSeconds: new(int64(1)),
			Containers: containers,
		},
	}
}

// sidecarPod is the example with another program beside the sidecar.
func (c *cluster) sidecarPod() (*corev1.Pod, error) {
	text, err := c.Installation().Manifest(filepath.Join("sidecar", "examples", "pod.yaml"))
	if err != nil {
		return nil, err
	}
	example := &corev1.Pod{}
	if err := yaml.Unmarshal(text, example); err != nil {
		return nil, fmt.Errorf("read the example of a sidecar: %w", err)
	}
	pod := c.pod("with-sidecar")
	pod.Labels = map[string]string{"app.kubernetes.io/name": sidecar.name}
	pod.Spec.ServiceAccountName, pod.Spec.ShareProcessNamespace, pod.Spec.Volumes = example.Spec.ServiceAccountName, new(true), example.Spec.Volumes
	for _, container := range example.Spec.Containers {
		if container.Name != sidecar.container {
			container = corev1.Container{Name: "app", Image: c.Testapp, ImagePullPolicy: corev1.PullIfNotPresent}
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
	}
	return pod, nil
}

// start creates a pod and waits until its containers run.
func (c *cluster) start(ctx context.Context, pod *corev1.Pod) error {
	if err := c.CreatePod(ctx, pod); err != nil {
		return err
	}
	return testcluster.Await(ctx, time.Second, patience, "pod "+pod.Name+" to run", func(ctx context.Context) (bool, error) {
		if err := c.API.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return false, err
		}
		for _, s := range pod.Status.ContainerStatuses {
			if s.State.Running == nil {
				return false, nil
			}
		}
		return len(pod.Status.ContainerStatuses) == len(pod.Spec.Containers), nil
	})
}

// restart replaces the pods of the daemon and the manager.
func (c *cluster) restart(ctx context.Context) error {
	for _, workload := range []string{"daemonset/refit-daemon", "deployment/refit-manager"} {
		for _, do := range []string{"restart", "status"} {
			if err := c.kubectl(ctx, nil, "rollout", do, "--namespace="+testcluster.System, workload); err != nil {
				return err
			}
		}
	}
	return nil
}

// recreate restarts the container of so many pods at once, and returns when all requests have ended.
func (c *cluster) recreate(ctx context.Context, name string, pods int) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range pods {
		group.Go(func() error {
			request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: fmt.Sprintf("%s-%s", name, podName(i))}}
			request.Spec.PodName = podName(i)
			request.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{Name: "app"}}
			request.Spec.TTLSecondsAfterFinished = new(int32(30)) // longer than a busy machine takes to ask again
			if err := c.API.Create(ctx, request); err != nil {
				return fmt.Errorf("create request %s: %w", request.Name, err)
			}
			err := testcluster.Await(ctx, time.Second, patience, "request "+request.Name, func(ctx context.Context) (bool, error) {
				err := c.API.Get(ctx, client.ObjectKeyFromObject(request), request)
				return err == nil && request.Status.Phase == v1beta1.ContainerRecreateRequestCompleted, err
			})
			if err != nil {
				return err
			}
			if request.Status.Message != "" { // of a failure
				return fmt.Errorf("request %s: %s", request.Name, request.Status.Message)
			}
			return nil
		})
	}
	return group.Wait()
}

// process finds the first process of a program.
func (c *cluster) process(ctx context.Context, p program) (int, error) {
	var pods corev1.PodList
	namespace := testcluster.System
	if p == sidecar {
		namespace = c.Namespace
	}
	if err := c.API.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": p.name}); err != nil {
		return 0, err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		for i := range pod.Status.ContainerStatuses {
			status := &pod.Status.ContainerStatuses[i]
			if status.Name != p.container || status.State.Running == nil || pod.DeletionTimestamp != nil || p == daemon && pod.Spec.NodeName != testcluster.Node {
				continue
			}
			return testcluster.PID(ctx, status)
		}
	}
	return 0, errors.New("no container runs")
}

func (c *cluster) apply(ctx context.Context, manifest string) error {
	text, err := c.Installation().Manifest(manifest)
	if err != nil {
		return err
	}
	return c.kubectl(ctx, text, "apply", "--server-side", "--namespace="+c.Namespace, "-f", "-")
}

func (c *cluster) kubectl(ctx context.Context, input []byte, args ...string) error {
	command := exec.CommandContext(ctx, c.Installation().Kubectl, args...)
	command.Stdin = bytes.NewReader(input)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}
