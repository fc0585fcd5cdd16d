package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/hack/patience"
	"github.com/refit-project/refit/hack/place"
)

//go:embed pod.yaml
var podManifest []byte

//go:embed request.yaml
var requestManifest []byte

const (
	setUpTimeout   = 3 * time.Minute
	restartTimeout = 2 * time.Minute
	pollInterval   = 200 * time.Millisecond
)

// demo is the pod and the request of the demo on a cluster.
type demo struct {
	place.Place
	client  client.WithWatch
	pod     *corev1.Pod
	request *v1beta1.ContainerRecreateRequest
}

func newDemo(where place.Place) (*demo, error) {
	api, err := place.Connect(where.Kubeconfig, v1beta1.AddToScheme)
	if err != nil {
		return nil, err
	}
	s := &demo{Place: where, client: api, pod: &corev1.Pod{}, request: &v1beta1.ContainerRecreateRequest{}}
	return s, errors.Join(yaml.UnmarshalStrict(podManifest, s.pod), yaml.UnmarshalStrict(requestManifest, s.request))
}

// setUp makes the pod anew and waits until it is ready.
func (d *demo) setUp(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.pod.Namespace}}
	if err := d.client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make namespace: %w", err)
	}
	for _, object := range []client.Object{d.request.DeepCopy(), d.pod.DeepCopy()} {
		if err := d.remove(ctx, object); err != nil {
			return err
		}
	}
	// The service account, without which no pod is let in, comes a moment after its namespace.
	err := d.until(ctx, func(ctx context.Context) (bool, error) {
		err := d.client.Create(ctx, d.pod)
		return err == nil, client.IgnoreNotFound(ignoreForbidden(err))
	})
	if err != nil {
		return fmt.Errorf("make pod web: %w", err)
	}
	err = d.until(ctx, func(ctx context.Context) (bool, error) {
		err := d.client.Get(ctx, client.ObjectKeyFromObject(d.pod), d.pod)
		return err == nil && podReady(d.pod), err
	})
	if err != nil {
		return fmt.Errorf("wait for pod web to be ready: %w", err)
	}
	return nil
}

func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

func (d *demo) remove(ctx context.Context, object client.Object) error {
	return d.until(ctx, func(ctx context.Context) (bool, error) {
		err := d.client.Delete(ctx, object, client.GracePeriodSeconds(0))
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

func (d *demo) until(ctx context.Context, done wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, pollInterval, patience.Of(setUpTimeout), true, done)
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func container(pod *corev1.Pod, name string) corev1.ContainerStatus {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == name {
			return status
		}
	}
	return corev1.ContainerStatus{}
}

// restart sends the request and follows it to its end.
func (d *demo) restart(ctx context.Context) (timeline, error) {
	ctx, cancel := context.WithTimeout(ctx, patience.Of(restartTimeout))
	defer cancel()
	before := d.pod.DeepCopy()
	// Watched from here on, so that nothing happens before we look.
	pods, err := d.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(d.pod.Namespace), client.MatchingFields{"metadata.name": d.pod.Name})
	if err != nil {
		return timeline{}, fmt.Errorf("watch pod: %w", err)
	}
	defer pods.Stop()
	requests, err := d.client.Watch(ctx, &v1beta1.ContainerRecreateRequestList{}, client.InNamespace(d.pod.Namespace))
	if err != nil {
		return timeline{}, fmt.Errorf("watch request: %w", err)
	}
	defer requests.Stop()
	recorded := timeline{before: before, created: time.Now()}
	if err := d.client.Create(ctx, d.request); err != nil {
		return timeline{}, fmt.Errorf("make request: %w", err)
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
