package fakenodes

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// restartTime is how long a simulated container is not ready after its image has changed.
	restartTime = time.Second
	reporters   = 8 // statuses written at a time
)

// Kubelets report what happens to containers whose image has changed, and correct the readiness of pods as kubelet does.
type Kubelets struct {
	api      client.Client
	followed cache.Cache
	queue    workqueue.TypedDelayingInterface[types.NamespacedName]
	group    sync.WaitGroup
}

// WithKubelets runs a scenario, while Kubelets report about the pods that followed has.
func WithKubelets(ctx context.Context, api client.Client, followed cache.Cache, run func(context.Context) error) error {
	following, end := context.WithCancel(ctx)
	defer end()
	kubelets := NewKubelets(api, followed)
	if err := kubelets.Start(following); err != nil {
		return err
	}
	defer kubelets.Stop()
	return run(ctx)
}

// NewKubelets returns Kubelets of the pods that followed has.
func NewKubelets(api client.Client, followed cache.Cache) *Kubelets {
	return &Kubelets{api: api, followed: followed, queue: workqueue.NewTypedDelayingQueue[types.NamespacedName]()}
}

// Start lets them report until Stop is called.
func (k *Kubelets) Start(ctx context.Context) error {
	informer, err := k.followed.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(_, object any) {
		if pod, ok := object.(*corev1.Pod); ok && (outdated(pod) != nil && isReady(pod) || overridden(pod)) {
			k.queue.Add(client.ObjectKeyFromObject(pod))
		}
	}})
	if err != nil {
		return err
	}
	for range reporters {
		k.group.Go(func() {
			for {
				key, shutdown := k.queue.Get()
				if shutdown {
					return
				}
				if err := k.report(ctx, key); err != nil && ctx.Err() == nil {
					fmt.Fprintln(os.Stderr, "report of a kubelet:", err)
					k.queue.AddAfter(key, restartTime)
				}
				k.queue.Done(key)
			}
		})
	}
	return nil
}

// Stop ends them.
func (k *Kubelets) Stop() {
	k.queue.ShutDown()
	k.group.Wait()
}

// outdated is the status of a container of another image than the spec has, nil if there is none.
func outdated(pod *corev1.Pod) *corev1.ContainerStatus {
	for _, c := range pod.Spec.Containers {
		for i := range pod.Status.ContainerStatuses {
			if s := &pod.Status.ContainerStatuses[i]; s.Name == c.Name && s.Image != c.Image {
				return s
			}
		}
	}
	return nil
}

func isReady(pod *corev1.Pod) bool { return isTrue(pod, corev1.PodReady) }

// overridden reports whether the node lifecycle controller has made a pod not ready, as it does when a node's heartbeats are late.
// The benchmark itself changes both conditions.
func overridden(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && !isReady(pod) && isTrue(pod, corev1.ContainersReady)
}

func isTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// report says that the old container has ended and, later, that the new one runs. It makes a pod ready again whose node was late.
func (k *Kubelets) report(ctx context.Context, key types.NamespacedName) error {
	var pod corev1.Pod
	if err := k.followed.Get(ctx, key, &pod); err != nil {
		return client.IgnoreNotFound(err)
	}
	if overridden(&pod) {
		return PatchStatus(ctx, k.api, key, nil, true)
	}
	old := outdated(&pod)
	if old == nil {
		return nil
	}
	if isReady(&pod) {
		ended := corev1.ContainerStatus{Name: old.Name, Image: old.Image, ImageID: old.ImageID, ContainerID: old.ContainerID, RestartCount: old.RestartCount}
		ended.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
		if err := PatchStatus(ctx, k.api, key, &ended, false); err != nil {
			return err
		}
		k.queue.AddAfter(key, restartTime)
		return nil
	}
	image := ""
	for _, c := range pod.Spec.Containers {
		if c.Name == old.Name {
			image = c.Image
		}
	}
	runs := corev1.ContainerStatus{
		Name: old.Name, Image: image, ImageID: "sha256:" + image, Ready: true, Started: new(true), RestartCount: old.RestartCount + 1,
		ContainerID: fmt.Sprintf("containerd://%s-%d", old.Name, old.RestartCount+1),
	}
	runs.State.Running = &corev1.ContainerStateRunning{}
	return PatchStatus(ctx, k.api, key, &runs, true)
}

// PatchStatus writes the readiness of a pod, and the status of one container if it is not nil.
func PatchStatus(ctx context.Context, api client.Client, key types.NamespacedName, container *corev1.ContainerStatus, ready bool) error {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	now := time.Now().UTC().Format(time.RFC3339)
	var conditions []map[string]any
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		conditions = append(conditions, map[string]any{"type": kind, "status": status, "lastTransitionTime": now})
	}
	changed := map[string]any{"conditions": conditions}
	if container != nil {
		text, err := json.Marshal(container)
		if err != nil {
			return err
		}
		fields := map[string]any{}
		if err := json.Unmarshal(text, &fields); err != nil {
			return err
		}
		if container.State.Running != nil {
			fields["state"] = map[string]any{"waiting": nil, "running": map[string]any{"startedAt": now}}
		} else {
			fields["state"] = map[string]any{"running": nil, "waiting": map[string]any{"reason": container.State.Waiting.Reason}}
		}
		changed["containerStatuses"] = []any{fields}
	}
	patch, err := json.Marshal(map[string]any{"status": changed})
	if err != nil {
		return err
	}
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = key.Namespace, key.Name
	err = api.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, patch))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
