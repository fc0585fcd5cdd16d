package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/kube/ownpod"
)

// workload identifies the controller that a pod shares with others. The UID distinguishes a workload that was deleted and
// created again with the same name.
type workload struct{ kind, name, uid string }

// key returns the key in the ConfigMap. A kind contains no dot, so the key is unambiguous.
func (w workload) key() string { return w.kind + "." + w.name }

// workload returns the controller of our pod. For a ReplicaSet it is the controller of the ReplicaSet, which outlives it. A
// pod without a controller is a workload of its own.
func (s *Store) workload(ctx context.Context) (workload, error) {
	if s.own != (workload{}) {
		return s.own, nil
	}
	pod, err := s.pod(ctx)
	if err != nil {
		return workload{}, err
	}
	w := workload{"Pod", pod.Name, string(pod.UID)}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		w = workload{owner.Kind, owner.Name, string(owner.UID)}
		if owner.Kind == "ReplicaSet" {
			if w, err = s.ownerOfReplicaSet(ctx, w); err != nil {
				return workload{}, err
			}
		}
	}
	s.own = w
	return w, nil
}

func (s *Store) ownerOfReplicaSet(ctx context.Context, set workload) (workload, error) {
	ref := ownpod.Reference{Group: "apps", Version: "v1", Resource: "replicasets", Namespace: s.options.Pod.Namespace, Name: set.name}
	b, err := s.options.API.Get(ctx, ref)
	if errors.Is(err, ownpod.ErrForbidden) {
		return workload{}, fmt.Errorf("find the workload of the pod: its role has to allow get of replicasets: %w", err)
	}
	if err != nil {
		return workload{}, fmt.Errorf("find the workload of the pod: %w", err)
	}
	var read metav1.PartialObjectMetadata
	if err := json.Unmarshal(b, &read); err != nil {
		return workload{}, fmt.Errorf("decode %s: %w", ref, err)
	}
	if owner := metav1.GetControllerOf(&read); owner != nil {
		return workload{owner.Kind, owner.Name, string(owner.UID)}, nil
	}
	return set, nil
}

func (s *Store) pod(ctx context.Context) (*corev1.Pod, error) {
	if pod := s.options.Observed(); pod != nil {
		return pod, nil
	}
	b, err := s.options.API.Get(ctx, ownpod.PodReference(s.options.Pod))
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(b, pod); err != nil {
		return nil, fmt.Errorf("decode pod: %w", err)
	}
	return pod, nil
}
