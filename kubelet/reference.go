package kubelet

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/identity"
)

// ContainerReference is what an Event about one container of a pod refers to, in the form of kubelet's own Events
// (kubelet, kubecontainer.GenerateContainerRef).
func ContainerReference(pod identity.Pod, container string) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: types.UID(pod.UID),
		FieldPath: "spec.containers{" + container + "}",
	}
}
