package manager

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cacheOptions keeps in memory only what is used: of every pod some hundred bytes, of Secrets the one with the
// manager's own certificate, of everything else all but the record of who wrote which field.
func cacheOptions(cfg Config) cache.Options {
	byObject := map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: trimPod}}
	if cfg.CertRotation {
		byObject[&corev1.Secret{}] = cache.ByObject{Namespaces: map[string]cache.Config{
			cfg.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", cfg.CertSecret)},
		}}
	}
	return cache.Options{ByObject: byObject, DefaultTransform: cache.TransformStripManagedFields()}
}

// trimPod leaves of a pod what its requests' life depends on. Admission needs more, and reads pods live.
func trimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("trim pod: got %T", object)
	}
	trimmed := &corev1.Pod{
		TypeMeta: pod.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{ReadinessGates: pod.Spec.ReadinessGates},
		Status: corev1.PodStatus{
			ContainerStatuses:     trimStatuses(pod.Status.ContainerStatuses),
			InitContainerStatuses: trimStatuses(pod.Status.InitContainerStatuses),
		},
	}
	if len(pod.Spec.ReadinessGates) > 0 {
		trimmed.Status.Conditions = pod.Status.Conditions
	}
	return trimmed, nil
}

func trimStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	trimmed := make([]corev1.ContainerStatus, len(statuses))
	for i, s := range statuses {
		trimmed[i] = corev1.ContainerStatus{Name: s.Name, ContainerID: s.ContainerID, Ready: s.Ready, RestartCount: s.RestartCount}
		if s.State.Running != nil {
			trimmed[i].State.Running = &corev1.ContainerStateRunning{}
		}
	}
	return trimmed
}
