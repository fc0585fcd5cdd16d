package workload

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/rollout/workload"
)

// refusedPause is how long a pod counts as failed after the API server has refused to begin its update, until that is tried again.
const refusedPause = 5 * time.Minute

// refused reports whether the API server would refuse another attempt too.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// try sends the writes of an update as dry runs, and returns an error if the API server refuses one. Other errors are left to the
// writes.
func (r *reconciler) try(ctx context.Context, pod *corev1.Pod, update *plan.Update) error {
	for _, trial := range inplace.Trials(pod, update) {
		if trial.Kind == inplace.StepResize {
			continue // the policy refit-manager-pods allows it only to a pod that has the record of an update
		}
		if err := r.podAPI().TryPatchPod(ctx, pod, trial.Subresource, trial.Patch()); refused(err) {
			return fmt.Errorf("%s: %w", trial.Message, err)
		}
	}
	return nil
}

// noteRefused notes that the API server has refused to begin the update of a pod to a revision: the pod counts as failed for some
// time. It returns errors that are no refusals.
func (r *reconciler) noteRefused(policy *v1alpha1.InPlaceUpdatePolicy, pod types.UID, revision string, err error) error {
	if !refused(err) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s, now := r.states[client.ObjectKeyFromObject(policy)], r.Clock()
	if s == nil {
		return err
	}
	if s.refusedPods == nil {
		s.refusedPods = map[types.UID]workload.RefusedWrite{}
	}
	maps.DeleteFunc(s.refusedPods, func(_ types.UID, write workload.RefusedWrite) bool { return !now.Before(write.Until) })
	s.refusedPods[pod] = workload.RefusedWrite{Revision: revision, Message: foreign.Shorten(err.Error(), maxEvent), Until: now.Add(refusedPause)}
	return nil
}
