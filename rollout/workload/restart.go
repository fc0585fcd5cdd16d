package workload

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/inplace"
)

// RestartRequest returns the ContainerRecreateRequest that restarts a container instance whose environment refers to a changed
// label or annotation.
func RestartRequest(policy *v1alpha1.InPlaceUpdatePolicy, pod *corev1.Pod, instance inplace.Instance) *v1beta1.ContainerRecreateRequest {
	request := inplace.RestartRequest(policy.Name, pod, instance)
	request.OwnerReferences = []metav1.OwnerReference{ownedBy(policy)}
	metav1.SetMetaDataAnnotation(&request.ObjectMeta, v1beta1.AnnotationReason, "new environment, by InPlaceUpdatePolicy "+policy.Name)
	return request
}

// notRestarted returns why the restart of an instance has failed, or nil.
func (v *view) notRestarted(p *pod, instance inplace.Instance) *v1alpha1.PodFailure {
	name := RestartRequest(v.policy, p.Pod, instance).Name
	for _, request := range v.requests[p.Name] {
		if request.Name != name || !crr.Completed(request) {
			continue
		}
		if outcome := crr.OutcomeOf(request); outcome.Reason != "" {
			return &v1alpha1.PodFailure{Pod: p.Name, Reason: outcome.Reason, Message: "ContainerRecreateRequest " + name + ": " + outcome.Message}
		}
	}
	return nil
}
