package inplace

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Writer is the access to the API server that Write needs.
type Writer interface {
	// Pod reads a pod from the API server, not from a cache.
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	// PatchPod sends a strategic merge patch to the pod or one of its subresources, and returns the stored pod. If the
	// resource version in the patch is not the stored one, it returns a conflict (apierrors.IsConflict).
	PatchPod(ctx context.Context, pod *corev1.Pod, subresource string, patch []byte) (*corev1.Pod, error)
}

// API is the access to the API server that Apply needs.
type API interface {
	Writer
	// Restart starts the restart of one instance of a container and does not wait for it. If it is called again for the
	// same instance it does nothing, or returns an error if the restart has failed.
	Restart(ctx context.Context, pod *corev1.Pod, instance Instance) error
}

// ErrChanged means that the pod is no longer the one that the step was decided for. The caller must call Next again.
var ErrChanged = errors.New("the pod has changed meanwhile")

// ErrStoredNothing means that the API server has accepted the step and stored nothing new. A repetition would have the
// same result until the pod changes.
var ErrStoredNothing = errors.New("the API server has stored nothing new")

// ErrRestart means that Write was called with a StepRestart.
var ErrRestart = errors.New("a container has to be restarted")

// Apply performs one step for the pod that it was decided for, and returns the pod after it. If the error is a conflict
// (apierrors.IsConflict) or ErrChanged, the caller should call Next with a fresh pod.
func Apply(ctx context.Context, api API, pod *corev1.Pod, step *Step) (*corev1.Pod, error) {
	if step.Kind != StepRestart {
		return Write(ctx, api, pod, step)
	}
	if err := api.Restart(ctx, pod, step.Restart); err != nil {
		return pod, fmt.Errorf("%s: %w", step.Message, err)
	}
	return pod, nil
}

// Write is like Apply for updates that restart no container for its environment, for example updates of sidecars. For a
// StepRestart it returns ErrRestart.
func Write(ctx context.Context, api Writer, pod *corev1.Pod, step *Step) (*corev1.Pod, error) {
	switch step.Kind {
	case StepRestart:
		return pod, fmt.Errorf("%s: %w", step.Message, ErrRestart)
	case StepDrain:
		// A caller that decided from a cache may not have seen the pod's last condition, and would skip the drain the
		// next time.
		live, err := api.Pod(ctx, pod.Namespace, pod.Name)
		if err != nil {
			return pod, fmt.Errorf("%s: %w", step.Message, err)
		}
		if live.UID != pod.UID || live.ResourceVersion != pod.ResourceVersion {
			return live, fmt.Errorf("%s: %w", step.Message, ErrChanged)
		}
	}
	stored, err := api.PatchPod(ctx, pod, step.Subresource, step.Patch())
	if err != nil {
		return pod, fmt.Errorf("%s: %w", step.Message, err)
	}
	if stored.ResourceVersion == pod.ResourceVersion {
		return stored, fmt.Errorf("%s: %w", step.Message, ErrStoredNothing)
	}
	return stored, nil
}
