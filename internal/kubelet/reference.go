package kubelet

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ContainerReference returns the reference of an Event about one container of a pod, in the form of kubelet's own Events
// (kubelet, kubecontainer.GenerateContainerRef).
func ContainerReference(namespace, pod string, uid types.UID, container string) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: pod, UID: uid,
		FieldPath: "spec.containers{" + container + "}",
	}
}
