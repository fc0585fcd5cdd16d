package trim

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Anyone who may create pods in one namespace decides what is in them, up to the maximum size of an object. The manager
// keeps a part of each pod of the cluster in memory.
const (
	// MaxPod bounds what is kept of a pod, in bytes. A pod with ten sidecars takes about 12 KiB.
	MaxPod = 32 << 10
	// MaxText bounds each text that is kept of a larger pod: its labels together, its controller, and what a Part keeps, in bytes.
	MaxText = 4 << 10
)

// Memory that one element of a list takes in addition to its strings, in bytes, rounded up.
const (
	containerBytes = 800
	portBytes      = 80
	entryBytes     = 64
)

// bound returns what is kept of a pod that is too large: the fields that identify it and say whether it is available, and what the
// Parts copy for such pods.
func (p *Pods) bound(kept *corev1.Pod) *corev1.Pod {
	bound := &corev1.Pod{
		TypeMeta: kept.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: kept.Namespace, Name: kept.Name, UID: kept.UID, ResourceVersion: kept.ResourceVersion, Generation: kept.Generation,
			CreationTimestamp: kept.CreationTimestamp, DeletionTimestamp: kept.DeletionTimestamp,
		},
		Spec:   corev1.PodSpec{NodeName: kept.Spec.NodeName},
		Status: corev1.PodStatus{Phase: kept.Status.Phase, ObservedGeneration: kept.Status.ObservedGeneration, Conditions: conditions(kept)},
	}
	if textSize(kept.Labels) <= MaxText {
		bound.Labels = kept.Labels
	}
	for _, owner := range kept.OwnerReferences {
		if owner.Size() <= MaxText {
			bound.OwnerReferences = append(bound.OwnerReferences, owner)
		}
	}
	for _, part := range p.parts {
		if part.Bound != nil {
			part.Bound(bound, kept)
		}
	}
	dropEmptyConditions(bound)
	return bound
}

// TooLarge reports whether [Pods.Of] has kept of a pod only what it keeps of one that is too large: no containers, without which
// the API server accepts no pod.
func TooLarge(kept *corev1.Pod) bool { return len(kept.Spec.Containers) == 0 }

// Size returns an estimate of a pod's memory, in bytes.
func Size(pod *corev1.Pod) int {
	size := pod.Size() + entryBytes*(len(pod.Labels)+len(pod.Annotations)+len(pod.Spec.ReadinessGates)+len(pod.Status.Conditions))
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		size += containerBytes * len(list)
		for i := range list {
			size += portBytes*len(list[i].Ports) + entryBytes*len(list[i].Env)
		}
	}
	return size + containerBytes*(len(pod.Status.ContainerStatuses)+len(pod.Status.InitContainerStatuses))
}

func textSize(texts map[string]string) int {
	size := 0
	for key, value := range texts {
		size += len(key) + len(value)
	}
	return size
}
