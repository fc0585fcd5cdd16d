package policy

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/rollout/workload"
)

// PodState is how far the update of a pod is, and what it waits for.
type PodState struct {
	Pod        *corev1.Pod
	State, Why string
}

// Workload is a workload as it was read, with its history.
type Workload struct{ stored *stored }

// Read reads a workload, or the workload of a policy.
func Read(ctx context.Context, config Config, target Target) (*Workload, error) {
	c, err := begin(ctx, config, target)
	if err != nil {
		return nil, err
	}
	s, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	return &Workload{s}, nil
}

// Selector selects the pods of the workload, and maybe others.
func (w *Workload) Selector() labels.Selector { return w.stored.selector }

// States returns how far each pod that the workload owns is, in the order of the updates.
func (w *Workload) States(policy *v1alpha1.InPlaceUpdatePolicy, pods []*corev1.Pod, now time.Time) ([]PodState, error) {
	from, err := w.stored.workload()
	if err != nil {
		return nil, fmt.Errorf("read the workload of InPlaceUpdatePolicy %s: %w", policy.Name, err)
	}
	var owned []*corev1.Pod
	for _, pod := range pods {
		if w.stored.owns(pod) {
			owned = append(owned, pod)
		}
	}
	preview := workload.NewPreview(policy, from, owned, now)
	return states(policy, &preview, now), nil
}

// states returns the state of each pod.
func states(policy *v1alpha1.InPlaceUpdatePolicy, preview *workload.Preview, now time.Time) []PodState {
	all, next := make([]PodState, 0, len(preview.Pods)), true
	for i := range preview.Pods {
		p := &preview.Pods[i]
		state, why := stateOf(p, policy, now)
		if state == stateWaiting && next {
			state, next = "next", false
		} else if state == stateWaiting { // for the same reason
			why = ""
		}
		all = append(all, PodState{p.Pod, state, why})
	}
	return all
}
