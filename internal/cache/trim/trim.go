// Package trim composes what the manager's cache keeps of pods. Each feature declares which fields of a pod it reads, as a
// [Part]; this package knows no feature. Decisions and clients must stay out.
package trim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxValue limits the values of annotations that are kept of every pod, in bytes. Of a longer value only the key is kept,
// unless a Part keeps it.
const MaxValue = 256

// Part is what one feature needs of pods, in addition to what is kept of every pod: the fields that identify it, its labels,
// controller, node, phase and condition Ready, annotations with short values, the names of its containers, and the name, ID,
// readiness and number of restarts of each instance.
type Part struct {
	// Keep copies fields of the pod to kept. The containers, container statuses and conditions of kept have the same indexes
	// as in the pod; a condition without a type is not kept. Other Parts may have copied fields before, so Keep sets what it
	// needs and clears nothing. It must not change the pod, or what kept shares with it.
	Keep func(kept, pod *corev1.Pod)
	// Bound copies fields of kept to bound if the pod is too large. It is nil if nothing more is needed. What it copies must be of limited
	// size. Conditions are as for Keep; bound has no containers.
	Bound func(bound, kept *corev1.Pod)
}

// Pods trims pods to what some Parts need.
type Pods struct{ parts []Part }

// NewPods returns Pods for some Parts. Their order does not matter.
func NewPods(parts ...Part) *Pods { return &Pods{parts} }

// Transform is the transform of a cache of pods.
func (p *Pods) Transform(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("trim pod: got %T", object)
	}
	return p.Of(pod), nil
}

// Of returns what is kept of a pod. It shares memory with the pod.
func (p *Pods) Of(pod *corev1.Pod) *corev1.Pod {
	kept := common(pod)
	for _, part := range p.parts {
		part.Keep(kept, pod)
	}
	dropEmptyConditions(kept)
	if Size(kept) > MaxPod {
		kept = p.bound(kept)
	}
	internPod(kept)
	return kept
}

// common returns what is kept of every pod.
func common(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: pod.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Generation: pod.Generation,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
			Labels: pod.Labels, Annotations: annotations(pod), OwnerReferences: controller(pod),
		},
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, Containers: containers(pod.Spec.Containers), InitContainers: containers(pod.Spec.InitContainers),
		},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, ObservedGeneration: pod.Status.ObservedGeneration, Conditions: conditions(pod),
			ContainerStatuses: statuses(pod.Status.ContainerStatuses), InitContainerStatuses: statuses(pod.Status.InitContainerStatuses),
		},
	}
}

func annotations(pod *corev1.Pod) map[string]string {
	if len(pod.Annotations) == 0 {
		return nil
	}
	kept := make(map[string]string, len(pod.Annotations))
	for key, value := range pod.Annotations {
		if len(value) > MaxValue {
			value = ""
		}
		kept[key] = value
	}
	return kept
}

func controller(pod *corev1.Pod) []metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return nil
	}
	return []metav1.OwnerReference{{Kind: owner.Kind, Name: owner.Name, UID: owner.UID, Controller: owner.Controller}}
}

func containers(list []corev1.Container) []corev1.Container {
	kept := make([]corev1.Container, len(list))
	for i := range list {
		kept[i].Name = list[i].Name
	}
	return kept
}

func statuses(list []corev1.ContainerStatus) []corev1.ContainerStatus {
	kept := make([]corev1.ContainerStatus, len(list))
	for i := range list {
		s := &list[i]
		kept[i] = corev1.ContainerStatus{Name: s.Name, ContainerID: s.ContainerID, Ready: s.Ready, RestartCount: s.RestartCount}
	}
	return kept
}

// conditions returns a list with an element for each condition of the pod, of which only Ready is set.
func conditions(pod *corev1.Pod) []corev1.PodCondition {
	kept := make([]corev1.PodCondition, len(pod.Status.Conditions))
	for i := range kept {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			transition(&kept[i], &pod.Status.Conditions[i])
		}
	}
	return kept
}

// dropEmptyConditions removes the conditions that no Part has kept, and returns their memory.
func dropEmptyConditions(kept *corev1.Pod) {
	all := kept.Status.Conditions
	n := 0
	for i := range all {
		if all[i].Type != "" {
			n++
		}
	}
	if n == len(all) && n > 0 {
		return
	}
	kept.Status.Conditions = nil
	if n == 0 {
		return
	}
	kept.Status.Conditions = make([]corev1.PodCondition, 0, n)
	for i := range all {
		if all[i].Type != "" {
			kept.Status.Conditions = append(kept.Status.Conditions, all[i])
		}
	}
}
