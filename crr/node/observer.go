package node

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kubelet"
)

// observer implements engine.Observer with the cache of pods and the container runtime.
type observer struct {
	node        string
	runtimeName string
	runtime     Runtime
	pods        cache.Store
	podAPI      PodAPI
}

func newObserver(config Config) *observer {
	return &observer{
		node: config.Node, runtimeName: config.RuntimeName, runtime: config.Runtime, pods: config.Pods.GetStore(), podAPI: config.PodAPI,
	}
}

// Pod implements engine.Observer. The cache may lag behind the request, so only the API server is trusted to say that
// the node has no pod with this name and UID.
func (o *observer) Pod(ctx context.Context, key identity.Pod) (*corev1.Pod, error) {
	if pod := o.cachedPod(key); pod != nil && string(pod.UID) == key.UID {
		return pod, nil
	}
	pod, err := o.podAPI.Pod(ctx, key.Namespace, key.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // a missing pod is an observation, not an error
	case err != nil:
		return nil, err
	case string(pod.UID) != key.UID || pod.Spec.NodeName != o.node:
		return nil, nil //nolint:nilnil // as above
	}
	return pod, nil
}

func (o *observer) cachedPod(key identity.Pod) *corev1.Pod {
	object, found, err := o.pods.GetByKey(key.String())
	if err != nil || !found {
		return nil
	}
	pod, _ := object.(*corev1.Pod)
	return pod
}

// Containers implements engine.Observer. It lists the instances of the requested containers that the runtime knows. It
// reads the full status of the newest instance of each; of the others only the ID and the state are needed, and so they
// are of the newest instance of each container that is not requested.
func (o *observer) Containers(ctx context.Context, request *crr.Request, pod *corev1.Pod, _ func(identity.ContainerID) bool) (crr.Observation, error) {
	observed := crr.Observation{
		Runtime: o.runtimeName, Instances: make(map[string][]crr.Instance, len(request.Spec.Containers)), Beside: map[string]crr.Instance{},
	}
	listed, err := o.runtime.ListContainers(ctx, kubelet.RuntimePodUID(pod))
	if err != nil {
		return crr.Observation{}, err
	}
	// Check all labels: the instances listed here may be stopped.
	ofPod := slices.DeleteFunc(slices.Clone(listed), func(c cri.Container) bool { return c.PodNamespace != pod.Namespace || c.PodName != pod.Name })
	for _, found := range slices.Backward(ofPod) { // so that the newest remains
		observed.Beside[found.Name] = crr.Instance{ID: o.containerID(found.ID), State: found.State}
	}
	for _, container := range request.Spec.Containers {
		delete(observed.Beside, container.Name)
		for _, found := range ofPod {
			if found.Name != container.Name {
				continue
			}
			instance := crr.Instance{ID: o.containerID(found.ID), State: found.State}
			if len(observed.Instances[container.Name]) == 0 {
				instance, err = o.instance(ctx, found.ID)
				if errors.Is(err, cri.ErrNotFound) {
					continue // removed since it was listed
				}
				if err != nil {
					return crr.Observation{}, err
				}
			}
			observed.Instances[container.Name] = append(observed.Instances[container.Name], instance)
		}
	}
	return observed, nil
}

func (o *observer) instance(ctx context.Context, id string) (crr.Instance, error) {
	status, err := o.runtime.ContainerStatus(ctx, id)
	if err != nil {
		return crr.Instance{}, err
	}
	return crr.Instance{
		ID: o.containerID(id), State: status.State, StartedAt: status.StartedAt,
		FinishedAt: status.FinishedAt, ExitCode: status.ExitCode, RestartCount: status.RestartCount,
	}, nil
}

func (o *observer) containerID(id string) identity.ContainerID {
	return identity.ContainerID{Runtime: o.runtimeName, ID: id}
}
