package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kubelet"
)

// observe reads the pod of a request and its containers on this node. If there is a deadline, it reads the containers
// until then.
func (w *Worker) observe(ctx context.Context, key identity.Pod, request *crr.Request, deadline time.Time) (crr.Observation, error) {
	observed := crr.Observation{
		Runtime: w.runtimeName, Actions: w.acts.of(request.UID),
		TakenAt: w.acts.takenAt(request.UID, time.Now()), ClockOffset: w.clockOffset(),
	}
	pod, err := w.pod(ctx, key)
	if err != nil || pod == nil {
		return observed, err
	}
	observed.Pod = pod
	if !deadline.IsZero() {
		bounded, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		ctx = bounded
	}
	observed.Instances, err = w.instances(ctx, request, pod)
	if err != nil {
		w.logger.Warn("containers cannot be seen", "pod", key, "request", request.Name, "err", err)
		observed.Unseen = "containers cannot be seen: " + err.Error()
	}
	// A stop that is in progress for an earlier request counts for this request too.
	for name, instances := range observed.Instances {
		if len(instances) > 0 && w.acts.busy(instances[0].ID) {
			act := observed.Actions[name]
			act.Running = true
			observed.Actions[name] = act
		}
	}
	return observed, nil
}

// pod returns the pod, or nil if the node has no pod with this name and UID. The cache may lag behind the request, so
// only the API server is trusted to say that.
func (w *Worker) pod(ctx context.Context, key identity.Pod) (*corev1.Pod, error) {
	if pod := w.cachedPod(key); pod != nil && string(pod.UID) == key.UID {
		return pod, nil
	}
	pod, err := w.podAPI.Pod(ctx, key.Namespace, key.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // a missing pod is an observation, not an error
	case err != nil:
		return nil, err
	case string(pod.UID) != key.UID || pod.Spec.NodeName != w.node:
		return nil, nil //nolint:nilnil // as above
	}
	return pod, nil
}

func (w *Worker) cachedPod(key identity.Pod) *corev1.Pod {
	object, found, err := w.pods.GetStore().GetByKey(key.String())
	if err != nil || !found {
		return nil
	}
	pod, _ := object.(*corev1.Pod)
	return pod
}

// instances lists the instances of the requested containers that the runtime knows. It reads the full status of the
// newest instance of each; of the others only the ID and the state are needed.
func (w *Worker) instances(ctx context.Context, request *crr.Request, pod *corev1.Pod) (map[string][]crr.Instance, error) {
	listed, err := w.runtime.ListContainers(ctx, kubelet.RuntimePodUID(pod))
	if err != nil {
		return nil, err
	}
	instances := make(map[string][]crr.Instance, len(request.Spec.Containers))
	for _, container := range request.Spec.Containers {
		for _, found := range listed {
			// Check all labels: the instances listed here may be stopped.
			if found.Name != container.Name || found.PodNamespace != pod.Namespace || found.PodName != pod.Name {
				continue
			}
			instance := crr.Instance{ID: w.containerID(found.ID), State: found.State}
			if len(instances[container.Name]) == 0 {
				instance, err = w.instance(ctx, found.ID)
				if errors.Is(err, cri.ErrNotFound) {
					continue // removed since it was listed
				}
				if err != nil {
					return nil, err
				}
			}
			instances[container.Name] = append(instances[container.Name], instance)
		}
	}
	return instances, nil
}

func (w *Worker) instance(ctx context.Context, id string) (crr.Instance, error) {
	status, err := w.runtime.ContainerStatus(ctx, id)
	if err != nil {
		return crr.Instance{}, err
	}
	return crr.Instance{
		ID: w.containerID(id), State: status.State, StartedAt: status.StartedAt,
		FinishedAt: status.FinishedAt, ExitCode: status.ExitCode, RestartCount: status.RestartCount,
	}, nil
}

func (w *Worker) containerID(id string) identity.ContainerID {
	return identity.ContainerID{Runtime: w.runtimeName, ID: id}
}

// touchValue returns the value of the touch annotation. It differs each time, because otherwise the write would change
// nothing.
func touchValue(request *crr.Request, now time.Time) string {
	return fmt.Sprintf("%s %s", request.Name, now.UTC().Format(time.RFC3339Nano))
}
