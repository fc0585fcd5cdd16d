package schedule

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout"
)

// Admit returns a new schedule as it is to be stored: with the name of the user who creates it. It does not change its
// argument. The error is a *rollout.InvalidError. What needs no code is a rule of the CRD.
func Admit(schedule *v1alpha1.RestartSchedule, user string) (*v1alpha1.RestartSchedule, error) {
	if _, err := Read(&schedule.Spec); err != nil {
		return nil, err
	}
	if selector := schedule.Spec.RolloutTemplate.Spec.Selector; selector != nil {
		if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
			return nil, invalid("spec.rolloutTemplate.spec.selector", err)
		}
	}
	if err := rollout.CheckReason(schedule); err != nil {
		return nil, err
	}
	out := schedule.DeepCopy()
	rollout.SetRequester(out, user)
	return out, nil
}

// AdmitUpdate returns a changed schedule as it is to be stored. Who changes what it does is the one who asks for its
// restarts from then on. The error is a *rollout.InvalidError.
func AdmitUpdate(before, after *v1alpha1.RestartSchedule, user string) (*v1alpha1.RestartSchedule, error) {
	if !equality.Semantic.DeepEqual(before.Spec, after.Spec) || before.Annotations[v1beta1.AnnotationReason] != after.Annotations[v1beta1.AnnotationReason] {
		return Admit(after, user)
	}
	if err := rollout.CheckUnchanged(before, after, v1beta1.AnnotationRequestedBy); err != nil {
		return nil, err
	}
	return after, nil
}
