package admission

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

// AdmitUpdate decides whether a change of a stored request, other than of its status, is admitted, and returns the
// request to store. It only checks what has changed, so a finalizer can always be removed. It does not change its
// arguments. The error is a *Refusal.
func AdmitUpdate(before, after *v1beta1.ContainerRecreateRequest) (*v1beta1.ContainerRecreateRequest, error) {
	out := after.DeepCopy()
	refill(&out.Spec, before.Spec)
	if !equality.Semantic.DeepEqual(before.Spec, out.Spec) {
		return nil, forbidden("spec", "spec of ContainerRecreateRequest is immutable: create another request")
	}
	for _, key := range []string{v1beta1.LabelPodUID, v1beta1.LabelNodeName} {
		if changed(before.Labels, after.Labels, key) {
			return nil, forbidden("metadata.labels["+key+"]", "not allowed to update immutable label %s", key)
		}
	}
	// Without the label no daemon sees the request, so only a completed request may lose it.
	if !crr.Completed(before) && before.DeletionTimestamp == nil &&
		before.Labels[v1beta1.LabelActive] != "" && changed(before.Labels, after.Labels, v1beta1.LabelActive) {
		return nil, forbidden("metadata.labels["+v1beta1.LabelActive+"]",
			"not allowed to change label %s before the request has completed: delete the request instead", v1beta1.LabelActive)
	}
	if before.Annotations[v1beta1.AnnotationUnreadyAcquired] != "" && changed(before.Annotations, after.Annotations, v1beta1.AnnotationUnreadyAcquired) {
		return nil, forbidden("metadata.annotations["+v1beta1.AnnotationUnreadyAcquired+"]", "not allowed to update annotation %s once it is set",
			v1beta1.AnnotationUnreadyAcquired)
	}
	for _, key := range []string{v1beta1.AnnotationAdmittedAt, v1beta1.AnnotationRestartBackoff, v1beta1.AnnotationRestartPolicy,
		v1beta1.AnnotationRequestedBy, v1beta1.AnnotationReason} {
		if changed(before.Annotations, after.Annotations, key) {
			return nil, forbidden("metadata.annotations["+key+"]", "not allowed to update immutable annotation %s: create another request", key)
		}
	}
	return out, nil
}

// refill restores fields that admission has filled in and that the update lacks: a second `kubectl apply` of the same
// manifest sends the containers without them.
func refill(after *v1beta1.ContainerRecreateRequestSpec, before v1beta1.ContainerRecreateRequestSpec) {
	for i := range min(len(after.Containers), len(before.Containers)) {
		is, was := &after.Containers[i], before.Containers[i].DeepCopy()
		if is.Name == was.Name && is.PreStop == nil && len(is.Ports) == 0 && is.StatusContext == nil {
			is.PreStop, is.Ports, is.StatusContext = was.PreStop, was.Ports, was.StatusContext
		}
	}
}

func changed(before, after map[string]string, key string) bool {
	was, had := before[key]
	is, has := after[key]
	return had != has || was != is
}
