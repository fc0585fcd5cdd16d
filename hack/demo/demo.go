package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/hack/demokit"
	"github.com/refit-project/refit/hack/timeout"
	"github.com/refit-project/refit/kubelet"
)

//go:embed pod.yaml
var podManifest []byte

//go:embed request.yaml
var requestManifest []byte

const restartTimeout = 2 * time.Minute

// demo is the pod and the request of the demo on a cluster.
type demo struct {
	*demokit.Demo
	api     *demokit.Client
	pod     *corev1.Pod
	request *v1beta1.ContainerRecreateRequest
}

func newDemo(kit *demokit.Demo) (*demo, error) {
	api, err := kit.Connect(v1beta1.AddToScheme)
	if err != nil {
		return nil, err
	}
	d := &demo{Demo: kit, api: api, pod: &corev1.Pod{}, request: &v1beta1.ContainerRecreateRequest{}}
	return d, errors.Join(yaml.UnmarshalStrict(podManifest, d.pod), yaml.UnmarshalStrict(requestManifest, d.request))
}

// setUp creates the pod, instead of that of an earlier demo, and waits until it is ready.
func (d *demo) setUp(ctx context.Context) error {
	if err := d.api.CreateNamespace(ctx, d.pod.Namespace); err != nil {
		return err
	}
	for _, object := range []client.Object{d.request.DeepCopy(), d.pod.DeepCopy()} {
		if err := d.api.Remove(ctx, object); err != nil {
			return err
		}
	}
	if err := d.api.CreatePod(ctx, d.pod); err != nil {
		return err
	}
	return d.api.WaitUntilReady(ctx, d.pod, "")
}

// container is the status of a container, empty if kubelet has not reported it.
func container(pod *corev1.Pod, name string) corev1.ContainerStatus {
	if status := kubelet.StatusOf(pod, name); status != nil {
		return *status
	}
	return corev1.ContainerStatus{}
}

// restart sends the request and follows it to its end.
func (d *demo) restart(ctx context.Context) (timeline, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout.Scaled(restartTimeout))
	defer cancel()
	before := d.pod.DeepCopy()
	// The watches begin before the request is created, so that no change is missed.
	pods, err := d.api.WatchPod(ctx, d.pod.Namespace, d.pod.Name)
	if err != nil {
		return timeline{}, err
	}
	defer pods.Stop()
	requests, err := d.api.Watch(ctx, &v1beta1.ContainerRecreateRequestList{}, client.InNamespace(d.pod.Namespace))
	if err != nil {
		return timeline{}, fmt.Errorf("watch request: %w", err)
	}
	defer requests.Stop()
	recorded := timeline{before: before, created: time.Now()}
	if err := d.api.Create(ctx, d.request); err != nil {
		return timeline{}, fmt.Errorf("create request: %w", err)
	}
	if err := recorded.follow(ctx, d.request.Name, pods.ResultChan(), requests.ResultChan()); err != nil {
		return timeline{}, err
	}
	return recorded, d.lookUp(ctx, &recorded)
}

// follow notes when the new container is first seen ready and the request completed.
func (t *timeline) follow(ctx context.Context, name string, pods, requests <-chan watch.Event) error {
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
			if request.Name != name || request.Status.Phase != v1beta1.ContainerRecreateRequestCompleted || !t.completed.IsZero() {
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
