package workload

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// Hold holds a workload in an update of it, if one of the policies asks for it: it does what the MutatingAdmissionPolicy
// refit-hold does, where the API server has none. It finds the policy by its target, not by a label of the workload. before and
// after are a Deployment, a StatefulSet or a DaemonSet; after is changed. It returns the policy, or nil.
func Hold(policies []v1alpha1.InPlaceUpdatePolicy, before, after metav1.Object) *v1alpha1.InPlaceUpdatePolicy {
	was, is := versionOf(before), versionOf(after)
	if is.kind == "" || was.kind != is.kind || is.ownerHolds() {
		return nil
	}
	held := before.GetLabels()[v1alpha1.LabelHeld] == "true"
	if !held && (is.restartedSince(was) || !is.begins(was)) {
		return nil
	}
	for i := range policies {
		policy := &policies[i]
		target := policy.Spec.TargetRef
		if target.Kind != is.kind || target.Name != after.GetName() || policy.Spec.HoldPolicy == v1alpha1.HoldByOwner ||
			!held && policy.DeletionTimestamp != nil || !meta.IsStatusConditionTrue(policy.Status.Conditions, v1alpha1.ConditionAccepted) {
			continue
		}
		hold(after)
		return policy
	}
	return nil
}

// version has the fields of a workload that decide whether it is held, before or after an update.
type version struct {
	kind      string // empty for other kinds
	template  *corev1.PodTemplateSpec
	paused    bool  // Deployment
	onDelete  bool  // the update strategy of others
	rolling   bool  // others have rollingUpdate, which a held DaemonSet keeps beside OnDelete
	partition int32 // StatefulSet
}

func versionOf(object metav1.Object) (v version) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return version{kind: "Deployment", template: &o.Spec.Template, paused: o.Spec.Paused}
	case *appsv1.StatefulSet:
		v = version{kind: "StatefulSet", template: &o.Spec.Template, onDelete: o.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType}
		if rolling := o.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
			v.rolling, v.partition = true, ptr.Deref(rolling.Partition, 0)
		}
	case *appsv1.DaemonSet:
		strategy := o.Spec.UpdateStrategy
		return version{kind: "DaemonSet", template: &o.Spec.Template, onDelete: strategy.Type == appsv1.OnDeleteDaemonSetStrategyType, rolling: strategy.RollingUpdate != nil}
	}
	return v
}

// ownerHolds reports whether the owner of a StatefulSet or DaemonSet has chosen OnDelete.
func (v *version) ownerHolds() bool { return v.onDelete && !v.rolling }

// restartedSince reports whether the update is a kubectl rollout restart, which asks for new pods.
func (v *version) restartedSince(was version) bool {
	at, restarted := v.template.Annotations[annotationRestartedAt]
	return restarted && at != was.template.Annotations[annotationRestartedAt]
}

// begins reports whether the controller of the workload would replace pods from now on: the template is changed, or
// its owner has ended a pause.
func (v *version) begins(was version) bool {
	changed := !apiequality.Semantic.DeepEqual(v.template, was.template)
	if v.kind == "Deployment" {
		return !v.paused && (was.paused || changed)
	}
	return !v.onDelete && (was.onDelete || v.partition < was.partition || changed)
}

// hold holds the workload. What its owner has set can be read from it.
func hold(object metav1.Object) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		o.Spec.Paused = true
	case *appsv1.StatefulSet:
		rolling := o.Spec.UpdateStrategy.RollingUpdate
		if rolling == nil {
			rolling = &appsv1.RollingUpdateStatefulSetStrategy{}
			o.Spec.UpdateStrategy.RollingUpdate = rolling
		}
		if partition := ptr.Deref(rolling.Partition, 0); partition < v1alpha1.HeldPartitionMin {
			rolling.Partition = ptr.To(v1alpha1.HeldPartition - partition)
		}
	case *appsv1.DaemonSet:
		o.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	}
	label(object, v1alpha1.LabelHeld)
}

// label sets a label of the workload to "true".
func label(object metav1.Object, key string) {
	labels := maps.Clone(object.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = "true"
	object.SetLabels(labels)
}

// WriteFormer replaces the template of a workload by the former one, and sets the label without which the API server refuses that.
func WriteFormer(object metav1.Object, template *corev1.PodTemplateSpec) {
	*TemplateOf(object) = *template
	label(object, v1alpha1.LabelUndone)
}

// holdLabel sets or removes the label by which the API server holds the workload. It stays until an update in progress has ended. It
// reports whether the workload has the label.
func (v *view) holdLabel() bool {
	now, uid := v.workload.Labels[v1alpha1.LabelHoldUID], string(v.workload.UID)
	switch {
	case v.policy.Spec.HoldPolicy == v1alpha1.HoldByOwner, v.policy.DeletionTimestamp != nil && !v.workload.Held:
		return v.unlabel()
	case now != uid && v.policy.DeletionTimestamp == nil:
		v.act(Action{Kind: ActionHoldLabel, Label: uid})
	}
	return now != ""
}

// unlabelled reports whether a new policy has to wait until the workload has the label by which the API server holds it.
func (v *view) unlabelled() bool {
	return v.policy.Spec.HoldPolicy != v1alpha1.HoldByOwner && v.policy.DeletionTimestamp == nil &&
		v.workload.Labels[v1alpha1.LabelHoldUID] != string(v.workload.UID) && !v.workload.Held &&
		!meta.IsStatusConditionTrue(v.policy.Status.Conditions, v1alpha1.ConditionAccepted)
}

// unlabel removes the label from the workload, if there is one. It reports whether the workload has the label.
func (v *view) unlabel() bool {
	if v.workload == nil || v.workload.Labels[v1alpha1.LabelHoldUID] == "" {
		return false
	}
	v.act(Action{Kind: ActionHoldLabel})
	return true
}

// HoldLabel returns a merge patch that sets the label by which the API server holds the workload, or removes it if value is empty.
func (w *Workload) HoldLabel(value string) map[string]any {
	labels := map[string]any{v1alpha1.LabelHoldUID: nil}
	if value != "" {
		labels[v1alpha1.LabelHoldUID] = value
	}
	return map[string]any{"metadata": map[string]any{"uid": w.UID, "labels": labels}}
}

// Release returns a merge patch that releases the workload: it restores the pause, partition or strategy of its owner.
func (w *Workload) Release() map[string]any {
	patch := map[string]any{"metadata": map[string]any{
		"uid": w.UID, "resourceVersion": w.ResourceVersion, "labels": map[string]any{v1alpha1.LabelHeld: nil, v1alpha1.LabelUndone: nil},
	}}
	switch {
	case w.OnDelete: // the choice of the owner
	case w.Kind == "Deployment":
		patch["spec"] = map[string]any{"paused": nil}
	case w.Kind == "StatefulSet":
		patch["spec"] = map[string]any{"updateStrategy": map[string]any{"rollingUpdate": map[string]any{"partition": w.Partition}}}
	default:
		patch["spec"] = map[string]any{"updateStrategy": map[string]any{"type": "RollingUpdate"}}
	}
	return patch
}
