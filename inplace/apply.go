package inplace

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// API is what Apply needs of the API server.
type API interface {
	// Pod reads a pod past every cache.
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	// PatchPod sends a strategic merge patch to the pod or one of its subresources, and returns the pod as stored. That
	// the resource version in the patch is not the stored one is a conflict (apierrors.IsConflict).
	PatchPod(ctx context.Context, pod *corev1.Pod, subresource string, patch []byte) (*corev1.Pod, error)
	// Restart has one instance of a container stopped and its next one started, without waiting for that. It is called
	// again for the same instance and does nothing then; if the restart has failed it returns that.
	Restart(ctx context.Context, pod *corev1.Pod, instance Instance) error
}

// ErrChanged means that the pod is not the one any more that was decided about: Next is to be called again.
var ErrChanged = errors.New("the pod has changed meanwhile")

// ErrStoredNothing means that the API server has accepted the step and stored nothing new: as long as the pod does not change it would
// do so again.
var ErrStoredNothing = errors.New("the API server has stored nothing new")

// Apply carries out one step for the pod that it was decided for, and returns the pod as it is then. An error that
// apierrors.IsConflict reports, and ErrChanged, are settled by calling Next with a fresh pod.
func Apply(ctx context.Context, api API, pod *corev1.Pod, step *Step) (*corev1.Pod, error) {
	switch step.Kind {
	case StepRestart:
		if err := api.Restart(ctx, pod, step.Restart); err != nil {
			return pod, fmt.Errorf("%s: %w", step.Message, err)
		}
		return pod, nil
	case StepDrain:
		// Whoever decided from a cache may not have seen the pod's last condition, and would skip the drain the next time.
		live, err := api.Pod(ctx, pod.Namespace, pod.Name)
		if err != nil {
			return pod, fmt.Errorf("%s: %w", step.Message, err)
		}
		if live.UID != pod.UID || live.ResourceVersion != pod.ResourceVersion {
			return live, fmt.Errorf("%s: %w", step.Message, ErrChanged)
		}
	}
	stored, err := api.PatchPod(ctx, pod, step.Subresource, step.Patch)
	if err != nil {
		return pod, fmt.Errorf("%s: %w", step.Message, err)
	}
	if stored.ResourceVersion == pod.ResourceVersion {
		return stored, fmt.Errorf("%s: %w", step.Message, ErrStoredNothing)
	}
	return stored, nil
}
