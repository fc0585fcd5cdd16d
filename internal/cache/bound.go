package cache

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// Anyone who may create pods in one namespace decides what is in them, up to the maximum size of an object. The manager
// keeps a part of each pod of the cluster in memory.
const (
	// maxCachedPod bounds what is kept of a pod, in bytes. A pod with ten sidecars takes about 12 KiB.
	maxCachedPod = 32 << 10
	// maxCachedLabels bounds the labels, the owner, the names of the SidecarSets and the condition of their updates that are
	// kept of a larger pod, in bytes each.
	maxCachedLabels = 4 << 10
	// maxCachedAnnotations bounds keys and values of the annotations of any other object, in bytes.
	maxCachedAnnotations = 32 << 10
)

// Memory that one element of a list takes in addition to its strings, in bytes, rounded up.
const (
	containerBytes = 800
	portBytes      = 80
	entryBytes     = 64
)

// tooLarge replaces the record of injection of a pod that is larger than maxCachedPod. It cannot be parsed, so the pod
// counts as one that cannot be updated in place.
const tooLarge = "not read: the pod is too large"

// boundPod returns the trimmed pod. If that takes more than maxCachedPod, it returns only the fields that identify the pod
// and say whether it is available.
func boundPod(trimmed *corev1.Pod) *corev1.Pod {
	if cachedSize(trimmed) <= maxCachedPod {
		return trimmed
	}
	bound := &corev1.Pod{
		TypeMeta: trimmed.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: trimmed.Namespace, Name: trimmed.Name, UID: trimmed.UID, ResourceVersion: trimmed.ResourceVersion, Generation: trimmed.Generation,
			CreationTimestamp: trimmed.CreationTimestamp, DeletionTimestamp: trimmed.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{
			NodeName: trimmed.Spec.NodeName, RestartPolicy: trimmed.Spec.RestartPolicy,
			TerminationGracePeriodSeconds: trimmed.Spec.TerminationGracePeriodSeconds, HostNetwork: trimmed.Spec.HostNetwork,
		},
		Status: corev1.PodStatus{Phase: trimmed.Status.Phase, PodIP: trimmed.Status.PodIP, PodIPs: trimmed.Status.PodIPs, ObservedGeneration: trimmed.Status.ObservedGeneration},
	}
	if textSize(trimmed.Labels) <= maxCachedLabels {
		bound.Labels = trimmed.Labels
	}
	for _, owner := range trimmed.OwnerReferences {
		if owner.Size() <= maxCachedLabels {
			bound.OwnerReferences = append(bound.OwnerReferences, owner)
		}
	}
	for _, c := range trimmed.Status.Conditions {
		if c.Type == corev1.PodReady || c.Type == corev1.PodInitialized {
			bound.Status.Conditions = append(bound.Status.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		}
		// Without this one refit-manager would write it again at each event of the pod, and cause the next event.
		if c.Type == v1beta1.ConditionSidecarSetUpgradable && len(c.Reason)+len(c.Message) <= maxCachedLabels {
			bound.Status.Conditions = append(bound.Status.Conditions, c)
		}
	}
	// A pod without the names of its SidecarSets counts as one that was not injected, which may be evicted.
	if list := trimmed.Annotations[v1beta1.AnnotationSidecarSetList]; list != "" && len(list) <= maxCachedLabels {
		bound.Annotations = map[string]string{v1beta1.AnnotationSidecarSetList: list, v1beta1.AnnotationSidecarSetHash: tooLarge}
	}
	return bound
}

// cachedSize returns an estimate of a pod's memory, in bytes.
func cachedSize(pod *corev1.Pod) int {
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

// trimObject is the transform of all other objects: it removes managedFields and, if the annotations exceed a bound, the
// longest ones. No such object is written as a whole.
func trimObject(object any) (any, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, fmt.Errorf("trim object: %w", err)
	}
	accessor.SetManagedFields(nil)
	annotations := accessor.GetAnnotations()
	size := textSize(annotations)
	if size <= maxCachedAnnotations {
		return object, nil
	}
	kept := maps.Clone(annotations)
	longestFirst := func(a, b string) int { return len(b) + len(kept[b]) - len(a) - len(kept[a]) }
	for _, key := range slices.SortedFunc(maps.Keys(annotations), longestFirst) {
		if size <= maxCachedAnnotations {
			break
		}
		size -= len(key) + len(kept[key])
		delete(kept, key)
	}
	accessor.SetAnnotations(kept)
	return object, nil
}
