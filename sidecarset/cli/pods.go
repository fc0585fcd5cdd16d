package cli

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/rollout"
	"github.com/refit-project/refit/sidecarset/upgrade"
)

// Set is a SidecarSet with its revisions.
type Set struct {
	*v1beta1.SidecarSet
	history []*appsv1.ControllerRevision
	target  *upgrade.Target
}

// Read reads the revisions of a SidecarSet. If they cannot be read, the Set has none.
func (c Config) Read(ctx context.Context, set *v1beta1.SidecarSet) (*Set, error) {
	history, err := c.history(ctx, set)
	return &Set{
		SidecarSet: set, history: history,
		target: upgrade.NewTarget(set, set.Status.LatestRevision, uint64(max(set.Generation, 0)), upgrade.NewHistory(history)),
	}, refused(err)
}

// Revisions returns the revisions, in the order of History.
func (s *Set) Revisions() ([]Revision, error) {
	all := make([]Revision, 0, len(s.history))
	for _, one := range s.history {
		r, err := describe(one, s.Status.LatestRevision)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// States of pods, in the order in which they are shown.
const (
	stateFailed    = "failed"
	stateUpdating  = "updating"
	stateNotPlace  = "not in place"
	stateOutdated  = "outdated"
	stateUnchanged = "updated"
)

var order = []string{stateFailed, stateUpdating, stateNotPlace, stateOutdated, stateUnchanged}

// PodState is how far the update of a pod to the latest revision is.
type PodState struct {
	Pod *corev1.Pod
	// Revision is the number of the revision that the pod has, or its name if there is no such revision.
	Revision string
	// State is failed, updating, not in place, outdated or updated, and Why explains it.
	State, Why string
}

// Pods returns the states of the pods that have the sidecars of the SidecarSet, by the decisions of refit-manager: first the pods that
// have failed, last the ones that are updated.
func (s *Set) Pods(pods []*corev1.Pod, now time.Time) []PodState {
	var states []PodState
	for _, pod := range pods {
		if slices.Contains(annotation.Names(pod), s.Name) && upgrade.Active(pod) {
			states = append(states, s.pod(pod, now))
		}
	}
	slices.SortFunc(states, func(a, b PodState) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.State), slices.Index(order, b.State)), strings.Compare(a.Pod.Namespace, b.Pod.Namespace), strings.Compare(a.Pod.Name, b.Pod.Name))
	})
	return states
}

func (s *Set) pod(pod *corev1.Pod, now time.Time) PodState {
	verdict := s.target.Judge(pod, s.target.Obstacles(pod), now)
	state := PodState{Pod: pod, State: stateUnchanged, Why: verdict.Message}
	switch {
	case verdict.Failed || verdict.State == rollout.Aborted:
		state.State = stateFailed
	case verdict.InFlight:
		state.State = stateUpdating
	case verdict.State == rollout.NotUpgradable:
		state.State = stateNotPlace
	case verdict.State == rollout.Outdated:
		state.State = stateOutdated
	}
	if injected := annotation.Of(pod, s.Name); injected != nil {
		state.Revision = injected.ControllerRevision
		for _, one := range s.history {
			if one.Name == injected.ControllerRevision {
				state.Revision = strconv.FormatInt(one.Revision, 10)
			}
		}
	}
	return state
}
