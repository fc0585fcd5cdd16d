package schedule

import (
	"errors"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/rollout"
)

// Admit returns a new schedule to store, with the name of the user who creates it. It does not change its argument. The
// error is a *rollout.InvalidError. Rules that need no code are in the CRD.
func Admit(schedule *v1alpha1.RestartSchedule, user string) (*v1alpha1.RestartSchedule, error) {
	times, err := Read(&schedule.Spec)
	if err != nil {
		return nil, err
	}
	if times.Never() {
		return nil, invalid("spec.schedule", errors.New("must be due at some date: none of its months has its day"))
	}
	if selector := schedule.Spec.RolloutTemplate.Spec.Selector; selector != nil {
		if _, err := foreign.Selector(selector); err != nil {
			return nil, invalid("spec.rolloutTemplate.spec.selector", err)
		}
	}
	if err := rollout.CheckReason(schedule); err != nil {
		return nil, err
	}
	template := &metav1.ObjectMeta{Annotations: schedule.Spec.RolloutTemplate.Metadata.Annotations}
	if err := rollout.CheckReason(template); err != nil {
		return nil, invalid("spec.rolloutTemplate.metadata.annotations["+v1beta1.AnnotationReason+"]", errors.New(rollout.ReasonRule()))
	}
	out := schedule.DeepCopy()
	rollout.SetRequester(out, user)
	return out, nil
}

// AdmitUpdate returns a changed schedule to store. A user who changes its effect becomes the requester of its restarts.
// The error is a *rollout.InvalidError.
func AdmitUpdate(before, after *v1alpha1.RestartSchedule, user string) (*v1alpha1.RestartSchedule, error) {
	if !equality.Semantic.DeepEqual(before.Spec, after.Spec) || before.Annotations[v1beta1.AnnotationReason] != after.Annotations[v1beta1.AnnotationReason] {
		return Admit(after, user)
	}
	if err := rollout.CheckUnchanged(before, after, v1beta1.AnnotationRequestedBy); err != nil {
		return nil, err
	}
	return after, nil
}
