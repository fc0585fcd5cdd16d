// Package plantest has the pod that the tests of in-place updates share. Only tests import it.
package plantest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Template returns a pod with a completed init container, a native sidecar and two containers. app refers to an
// annotation and a label, log to the same annotation.
func Template() *corev1.PodTemplateSpec {
	annotation := MetadataEnv("CONFIG", "metadata.annotations['config']")
	pod := &corev1.PodTemplateSpec{}
	pod.Labels = map[string]string{"tier": "web"}
	pod.Annotations = map[string]string{"config": "one"}
	pod.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways,
		InitContainers: []corev1.Container{
			{Name: "setup", Image: "setup:1"},
			{Name: "mesh", Image: "mesh:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
		},
		Containers: []corev1.Container{
			{Name: "app", Image: "app:1", Resources: Resources("100m", ""), Env: []corev1.EnvVar{annotation, MetadataEnv("TIER", "metadata.labels['tier']")}},
			{Name: "log", Image: "log:1", Env: []corev1.EnvVar{annotation}},
		},
	}
	return pod
}

// MetadataEnv returns an environment variable whose value is a field of the pod, for example metadata.labels['tier'].
func MetadataEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

// Resources returns a request and a limit of CPU. An empty one is left out.
func Resources(request, limit string) corev1.ResourceRequirements {
	list := func(cpu string) corev1.ResourceList {
		if cpu == "" {
			return nil
		}
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	return corev1.ResourceRequirements{Requests: list(request), Limits: list(limit)}
}
