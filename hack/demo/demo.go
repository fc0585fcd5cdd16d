package main

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/hack/demokit"
	"github.com/refit-project/refit/hack/timeout"
	"github.com/refit-project/refit/internal/kubelet"
)

//go:embed pod.yaml
var podManifest []byte

const restartTimeout = 2 * time.Minute

// demo is the pod of the demo on a cluster.
type demo struct {
	*demokit.Demo
	api *demokit.Client
	pod *corev1.Pod
}

func newDemo(kit *demokit.Demo) (*demo, error) {
	api, err := kit.Connect(v1beta1.AddToScheme)
	if err != nil {
		return nil, err
	}
	d := &demo{Demo: kit, api: api, pod: &corev1.Pod{}}
	return d, yaml.UnmarshalStrict(podManifest, d.pod)
}

// container is the status of a container, empty if kubelet has not reported it.
func container(pod *corev1.Pod, name string) corev1.ContainerStatus {
	if status := kubelet.StatusOf(pod, name); status != nil {
		return *status
	}
	return corev1.ContainerStatus{}
}

// restart has kubectl-refit restart container app, and follows the request that it makes to its end.
func (d *demo) restart(ctx context.Context) (timeline, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout.Scaled(restartTimeout))
	defer cancel()
	before := d.pod.DeepCopy()
	var list v1beta1.ContainerRecreateRequestList
	if err := d.api.List(ctx, &list, client.InNamespace(d.pod.Namespace)); err != nil {
		return timeline{}, fmt.Errorf("list requests: %w", err)
	}
	// The watches begin before the request is created, so that no change is missed.
	pods, err := d.api.WatchPod(ctx, d.pod.Namespace, d.pod.Name)
	if err != nil {
		return timeline{}, err
	}
	defer pods.Stop()
	requests, err := d.api.Watch(ctx, &v1beta1.ContainerRecreateRequestList{}, client.InNamespace(d.pod.Namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return timeline{}, fmt.Errorf("watch request: %w", err)
	}
	defer requests.Stop()
	recorded := timeline{before: before}
	both, watching := errgroup.WithContext(ctx)
	both.Go(func() error { return recorded.follow(watching, pods.ResultChan(), requests.ResultChan()) })
	both.Go(func() error {
		return d.refit(watching, "restart", "pod/"+d.pod.Name, "--container=app", "--reason=make demo")
	})
	if err := both.Wait(); err != nil {
		return timeline{}, err
	}
	return recorded, d.lookUp(ctx, &recorded)
}

// refit runs kubectl-refit and shows what it says.
func (d *demo) refit(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, filepath.Join(d.Programs(), "kubectl-refit"), append(args, "--namespace="+d.pod.Namespace)...)
	out, err := command.CombinedOutput()
	fmt.Fprintf(d.Out, "\n  $ kubectl refit %s\n", strings.Join(command.Args[1:], " "))
	for line := range strings.Lines(string(out)) {
		fmt.Fprint(d.Out, "  ", line)
	}
	if err != nil {
		return fmt.Errorf("kubectl refit %s: %w", args[0], err)
	}
	return nil
}

// follow notes when the new container is first seen ready and the request completed.
func (t *timeline) follow(ctx context.Context, pods, requests <-chan watch.Event) error {
	for t.ready.IsZero() || t.completed.IsZero() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the request to complete: %w", ctx.Err())
		case event := <-pods:
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				return fmt.Errorf("watch pod: ended by %s", event.Type)
			}
			app := container(pod, "app")
			if t.ready.IsZero() && app.Ready && app.ContainerID != container(t.before, "app").ContainerID {
				t.ready, t.after = time.Now(), pod
			}
		case event := <-requests:
			request, ok := event.Object.(*v1beta1.ContainerRecreateRequest)
			if !ok {
				return fmt.Errorf("watch request: ended by %s", event.Type)
			}
			if request.Status.Phase != v1beta1.ContainerRecreateRequestCompleted || !t.completed.IsZero() {
				continue
			}
			t.completed, t.request = time.Now(), request
			if request.Status.Message != "" {
				return fmt.Errorf("the request failed: %s", request.Status.Message)
			}
		}
	}
	return nil
}

// socket is the runtime's on the pod's node, where that is on this machine.
func (d *demo) socket() string {
	if !d.Own {
		return ""
	}
	return filepath.Join(d.Root, ".cluster", "nodes", d.pod.Spec.NodeName, "containerd.sock")
}
