package trim

import (
	"unique"

	corev1 "k8s.io/api/core/v1"
)

// interned returns a string equal to s that other pods share. The pods of a workload have most strings in common, and decoding allocates
// each of them for each pod. The garbage collector may drop a string that is shared; the next pods then share another copy.
func interned[S ~string](s S) S { return S(unique.Make(string(s)).Value()) }

// internPod replaces strings of a trimmed pod that other pods probably have too.
func internPod(pod *corev1.Pod) {
	pod.Namespace, pod.Spec.NodeName = interned(pod.Namespace), interned(pod.Spec.NodeName)
	pod.Labels, pod.Annotations = internMap(pod.Labels), internMap(pod.Annotations)
	for i := range pod.OwnerReferences {
		owner := &pod.OwnerReferences[i]
		owner.Kind, owner.Name, owner.UID = interned(owner.Kind), interned(owner.Name), interned(owner.UID)
	}
	for i := range pod.Spec.ImagePullSecrets {
		pod.Spec.ImagePullSecrets[i].Name = interned(pod.Spec.ImagePullSecrets[i].Name)
	}
	internContainers(pod.Spec.Containers)
	internContainers(pod.Spec.InitContainers)
	internStatuses(pod.Status.ContainerStatuses)
	internStatuses(pod.Status.InitContainerStatuses)
	internConditions(pod.Status.Conditions)
}

func internMap(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	shared := make(map[string]string, len(m))
	for key, value := range m {
		shared[interned(key)] = interned(value)
	}
	return shared
}

func internContainers(containers []corev1.Container) {
	for i := range containers {
		c := &containers[i]
		c.Name, c.Image, c.ImagePullPolicy = interned(c.Name), interned(c.Image), interned(c.ImagePullPolicy)
		c.Resources = resources.intern(&c.Resources)
		for j := range c.Env {
			c.Env[j].Name, c.Env[j].Value = interned(c.Env[j].Name), interned(c.Env[j].Value)
		}
	}
}

func internStatuses(statuses []corev1.ContainerStatus) {
	for i := range statuses {
		s := &statuses[i]
		s.Name, s.Image, s.ImageID = interned(s.Name), interned(s.Image), interned(s.ImageID)
	}
}

func internConditions(conditions []corev1.PodCondition) {
	for i := range conditions {
		c := &conditions[i]
		c.Type, c.Status, c.Reason = interned(c.Type), interned(c.Status), interned(c.Reason)
	}
}
