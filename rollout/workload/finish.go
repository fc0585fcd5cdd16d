package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/inplace/plan"
)

// ReplicaSet is a ReplicaSet of a Deployment to write, with its new template.
type ReplicaSet struct {
	// Name of the ReplicaSet. UID and ResourceVersion are empty for one to create.
	Name, UID, ResourceVersion string
	Template                   *corev1.PodTemplateSpec
	// Labels are for one to create, with 0 replicas.
	Labels map[string]string
	// Revision and ChangeCause are values of annotations, for kubectl rollout history. If Revision is empty, both stay as they are.
	Revision, ChangeCause string
}

// maxPrefix limits the part of a ReplicaSet's name that is the name of the Deployment: a name has at most 253 bytes.
const maxPrefix = 230

// replicaSetInterval is the time between reads of a ReplicaSet whose controller has not observed its template yet.
const replicaSetInterval = time.Second

// finish ends the update of a workload whose pods all have the template. For a Deployment it first writes a ReplicaSet with the
// former template, for kubectl rollout undo, then the new template of the ReplicaSet that has the pods, so that the
// controller of the Deployment finds nothing to do after the release. Pods that were created meanwhile are updated before it.
func (v *view) finish() {
	w, status := v.workload, &v.decision.Status
	if !v.restored && w.Kind == "Deployment" && !v.finishReplicaSets() {
		return
	}
	switch {
	case v.restored: // it stays held, since its own template is another one
		status.Update, status.Step, status.StepTime = nil, nil, nil
	case w.Held:
		v.set(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonUpdating, "all pods have the template; the workload is released")
		v.act(Action{Kind: ActionRelease})
	default:
		if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing); status.Update != nil && (c == nil || c.Reason != v1alpha1.ReasonReplacing) {
			v.decision.NothingRestarted = v.fields.restartsNothing()
		}
		status.Update, status.Step, status.StepTime = nil, nil, nil
		status.CurrentRevision = w.Revision
		v.set(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonCompleted, "all pods have the template"+v.excludedPods())
	}
}

// relabel sets the label of the present revision for a template that is equal to the one before although it is written differently, such
// as memory of 1024Mi instead of 1Gi: the controllers of StatefulSets and DaemonSets take it for another one, and would replace the
// pods. It reports whether a pod needs the label. A pod of an unknown revision may have another template.
func (v *view) relabel() bool {
	needed := false
	for _, p := range v.pods {
		if !p.labelled && !p.excluded && v.workload.revisions[p.Labels[appsv1.ControllerRevisionHashLabelKey]] != nil {
			needed = true
			v.act(Action{Kind: ActionLabel, Pod: p.Pod, Label: v.workload.Label})
		}
	}
	if needed {
		v.set(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonUpdating, "all pods have the template; they get the label of its revision")
	}
	return needed
}

// excludedPods returns the end of a message about all pods: how many of them the partition of a StatefulSet excludes.
func (v *view) excludedPods() string {
	n := 0
	for _, p := range v.pods {
		if p.excluded && !p.has {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", apart from %d that the partition of the StatefulSet excludes", n)
}

// finishReplicaSets reports whether the ReplicaSet with the pods has the template, and its controller has observed it.
// Until then it makes one write at a time, and waits for its result.
func (v *view) finishReplicaSets() bool {
	w := v.workload
	active := w.active()
	if active == nil {
		return true
	}
	if sameTemplate(&active.Spec.Template, w.Template) {
		if active.Status.ObservedGeneration >= active.Generation {
			return true
		}
		v.again(v.now.Add(replicaSetInterval)) // ReplicaSets are not watched
		return false
	}
	if !w.Held && (!w.OwnerHolds || v.policy.Spec.HoldPolicy != v1alpha1.HoldByOwner) {
		v.notHeld() // its controller would move the pods
		return false
	}
	v.set(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonUpdating, "all pods have the template; its ReplicaSet gets it")
	if kept := v.history(active); kept != nil {
		v.act(Action{Kind: ActionKeepHistory, ReplicaSet: kept})
		return false
	}
	v.act(Action{Kind: ActionSetTemplate, ReplicaSet: written(active, w.Template)})
	return false
}

// history returns the ReplicaSet to which the former template is written before the active one gets the new template; nil if there
// is none. If another ReplicaSet has the new template, it gets the former one: if two ReplicaSets have the template of the
// Deployment, its controller chooses the older one and would move all pods to it.
func (v *view) history(active *appsv1.ReplicaSet) *ReplicaSet {
	w, kept := v.workload, false
	for _, r := range w.ReplicaSets {
		switch {
		case r == active:
		case sameTemplate(&r.Spec.Template, w.Template):
			return historyOf(active, written(r, &active.Spec.Template))
		case sameTemplate(&r.Spec.Template, &active.Spec.Template):
			kept = true
		}
	}
	if kept || w.historyLimit == 0 {
		return nil
	}
	name, hash := w.unusedName(&active.Spec.Template)
	labels := maps.Clone(active.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	template := withoutHash(&active.Spec.Template)
	template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	return historyOf(active, &ReplicaSet{Name: name, Labels: labels, Template: template})
}

// historyOf gives a ReplicaSet that gets the template of the active one its revision, as if a rollout had left the active one: the
// controller of the Deployment then numbers the new template as the next revision.
func historyOf(active *appsv1.ReplicaSet, kept *ReplicaSet) *ReplicaSet {
	kept.Revision, kept.ChangeCause = active.Annotations[AnnotationRevision], active.Annotations[AnnotationChangeCause]
	return kept
}

// unusedName returns a name for a ReplicaSet, and the value of pod-template-hash in its selector. A ReplicaSet that was created for this
// template can have another one since: after an undo it has the template that was left.
func (w *Workload) unusedName(template *corev1.PodTemplateSpec) (name, hash string) {
	for i := 0; ; i++ {
		hash = "r" + templateHash(template)
		if i > 0 {
			hash += fmt.Sprintf("n%d", i)
		}
		name = strings.TrimRight(w.Name[:min(len(w.Name), maxPrefix)], ".-") + "-" + hash // a part of a name begins and ends with a letter or digit
		if !slices.ContainsFunc(w.ReplicaSets, func(r *appsv1.ReplicaSet) bool { return r.Name == name }) {
			return name, hash
		}
	}
}

// written returns a ReplicaSet with another template, and its own hash, which is in its selector.
func written(r *appsv1.ReplicaSet, template *corev1.PodTemplateSpec) *ReplicaSet {
	template = withoutHash(template)
	if hash, ok := r.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; ok {
		template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	}
	return &ReplicaSet{Name: r.Name, UID: string(r.UID), ResourceVersion: r.ResourceVersion, Template: template}
}

// notInPlace applies podUpdatePolicy to a template that pods cannot follow in place.
func (v *view) notInPlace(observed Observation, refused *plan.RefusedError) {
	w := v.workload
	message := fmt.Sprintf("not possible in place: %s", refused.Refusals[0].String())
	switch {
	case v.restored: // the release would let the controller of the workload replace the pods by failed ones
		v.set(v1alpha1.ConditionProgressing, false, v1alpha1.ReasonUndone, "this template has failed before and was undone; going back is "+message)
	case w.OwnerHolds && v.policy.Spec.HoldPolicy != v1alpha1.HoldByOwner:
		v.pausedFor("the owner of the workload has paused it")
	case w.Held && v.applyDeletionPolicy():
	case v.policy.Spec.PodUpdatePolicy == v1alpha1.PodUpdateInPlaceOnly && v.deleting():
		v.replacing(message) // nothing can be completed
	case v.policy.Spec.PodUpdatePolicy == v1alpha1.PodUpdateInPlaceOnly && (w.Held || w.OwnerHolds): // kubectl rollout restart is not held
		v.completeBegun()
		v.set(v1alpha1.ConditionProgressing, false, v1alpha1.ReasonNotInPlace, message)
	case w.OwnerHolds && w.Kind == "Deployment":
		v.set(v1alpha1.ConditionProgressing, false, v1alpha1.ReasonNotInPlace, message+"; resume the Deployment to replace its pods")
	case w.OwnerHolds:
		v.replacing(message)
		v.evict(observed)
	default:
		v.replacing(message)
	}
}

// completeBegun continues the updates of pods to an earlier template that need a write to go on: such a pod may be drained.
func (v *view) completeBegun() {
	for _, p := range v.pods {
		if p.budget.Left {
			v.act(Action{Kind: ActionContinue, Pod: p.Pod})
		}
	}
}

// replacing releases the workload, so that its controller replaces the pods. While spec.paused is set, the workload stays held.
//
// The fields of the update are kept until the pods have been replaced: if an earlier template is written before, its controller
// keeps the pods that it has created from it, also those that were updated, see leftBehind.
func (v *view) replacing(message string) {
	w := v.workload
	if v.policy.Spec.Paused && !v.deleting() && (w.Held || w.OwnerHolds) {
		v.completeBegun()
		v.pausedFor("spec.paused is set: " + message)
		return
	}
	if w.Held {
		v.act(Action{Kind: ActionRelease})
	}
	v.set(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonReplacing, message)
}

// notHeld sets Progressing for a workload that is not held although pods have to be updated.
func (v *view) notHeld() {
	if v.policy.Spec.HoldPolicy == v1alpha1.HoldByOwner {
		v.set(v1alpha1.ConditionProgressing, false, v1alpha1.ReasonNotHeld, messageOwnerHolds)
		return
	}
	v.set(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonReplacing, "the workload was not held when its template was changed; its controller replaces the pods")
}

// leftBehind reports whether the controller of a workload that is not held does not replace the pods that do not have the template: it
// created them from it, before they were updated to another one.
func (v *view) leftBehind() bool {
	return !slices.ContainsFunc(v.pods, func(p *pod) bool { return !p.excluded && !p.created })
}
