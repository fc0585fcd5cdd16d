package inplace_test

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// template is a pod of a finished init container, a native sidecar and two containers; app refers to an annotation and a
// label, log to the same annotation.
func template() *corev1.PodTemplateSpec {
	annotation := metadataEnv("CONFIG", "metadata.annotations['config']")
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
			{Name: "app", Image: "app:1", Resources: resources("100m", ""), Env: []corev1.EnvVar{annotation, metadataEnv("TIER", "metadata.labels['tier']")}},
			{Name: "log", Image: "log:1", Env: []corev1.EnvVar{annotation}},
		},
	}
	return pod
}

func metadataEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

func resources(request, limit string) corev1.ResourceRequirements {
	list := func(cpu string) corev1.ResourceList {
		if cpu == "" {
			return nil
		}
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	return corev1.ResourceRequirements{Requests: list(request), Limits: list(limit)}
}
