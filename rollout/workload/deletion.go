package workload

import (
	"slices"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// applyDeletionPolicy does what spec.deletionPolicy says about an update in progress, if the policy is being deleted. It reports
// whether nothing else is to be done.
func (v *view) applyDeletionPolicy() bool {
	if !v.deleting() {
		return false
	}
	switch v.policy.Spec.DeletionPolicy {
	case v1alpha1.UpdateDeletionRelease:
		v.replacing("the policy is deleted: the controller of the workload replaces the pods")
		return true
	case v1alpha1.UpdateDeletionUndo:
		if v.decision.Status.UndoneRevision == "" || v.undone() {
			v.undo("the policy is deleted")
			return true
		}
	}
	return false
}

// unfinishedByOwner reports whether the deletion policy is about an update in progress of a workload that its owner holds: only the
// status shows it.
func (v *view) unfinishedByOwner() bool {
	return v.policy.Spec.HoldPolicy == v1alpha1.HoldByOwner && v.workload.OwnerHolds && v.decision.Status.Update != nil &&
		v.policy.Spec.DeletionPolicy != v1alpha1.UpdateDeletionRelease
}

// completes reports whether the decision updates pods in place, now or after the former template has been written.
func (v *view) completes() bool {
	return v.decision.Fields != nil || slices.ContainsFunc(v.decision.Actions, func(a Action) bool { return a.Kind == ActionUndo })
}

// deleting reports whether the policy is being deleted.
func (v *view) deleting() bool { return v.policy.DeletionTimestamp != nil }
