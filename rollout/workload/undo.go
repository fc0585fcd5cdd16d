package workload

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/wording"
)

// undone reports whether the present template has failed before and was undone.
func (v *view) undone() bool {
	return v.decision.Status.UndoneRevision == v.workload.Revision && v.workload.Revision != ""
}

// undo writes the former template to the workload. The pods with the new one are then updated to it, as in any other update.
func (v *view) undo(why string) {
	template := v.formerTemplate()
	if template == nil {
		v.set(v1alpha1.ConditionProgressing, false, v1alpha1.ReasonPodsFailed, why+", and there is no former template to go back to")
		return
	}
	v.decision.Status.UndoneRevision = v.workload.Revision
	v.act(Action{Kind: ActionUndo, Template: template})
	v.set(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonUndone, why+": the former template is written to the workload")
}

// formerTemplate returns the template that all pods had at the end of the last update. If that is not known, it returns the template of
// the ReplicaSet that has the pods, or of the revision of a pod that was not updated; nil if there is none.
func (v *view) formerTemplate() *corev1.PodTemplateSpec {
	if before := v.workload.at(v.decision.Status.CurrentRevision); before != nil && !sameTemplate(before.Template, v.workload.Template) {
		return withoutHash(before.Template)
	}
	var pods []*corev1.Pod
	for _, p := range v.pods {
		if p.stage == outdated || !p.labelled {
			pods = append(pods, p.Pod)
		}
	}
	templates := v.workload.former(pods)
	if len(templates) == 0 {
		return nil
	}
	return withoutHash(templates[0])
}

// goesBack reports whether the new template is the one that all pods had before this update. Most of them still have it, so steps and
// partition do not apply, and their nodes had its images.
func (v *view) goesBack() bool {
	return v.workload.Revision != "" && v.workload.Revision == v.decision.Status.CurrentRevision
}

// restore takes the former template as the present one if the present one was undone and has been written again, for example by
// a GitOps tool. Otherwise that tool and Refit would write the template in turn.
func (v *view) restore() {
	w, status := v.workload, &v.decision.Status
	if !v.undone() || status.UpdateRevision == w.Revision || v.deleting() || !w.Held && (!w.OwnerHolds || v.policy.Spec.HoldPolicy != v1alpha1.HoldByOwner) {
		return
	}
	if former := w.at(status.UpdateRevision); former != nil && !w.mixed() {
		v.workload, v.restored = former, true
	}
}

// updateToFormer updates pods to the former template without writing it to the workload.
func (v *view) updateToFormer(observed Observation) {
	v.update(observed)
	c := meta.FindStatusCondition(v.decision.Status.Conditions, v1alpha1.ConditionProgressing)
	if c != nil && c.Status == metav1.ConditionFalse && c.Reason != v1alpha1.ReasonUndone {
		return // pods have failed
	}
	message := "this template has failed before and was undone: "
	if left := len(v.pods) - v.finished(); left > 0 {
		message += wording.Count(left, "pod goes", "pods go") + " back to the former one"
	} else {
		message += "the pods have the former one; change it to try again"
	}
	v.set(v1alpha1.ConditionProgressing, false, v1alpha1.ReasonUndone, message)
}
