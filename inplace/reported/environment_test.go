package reported_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/reported"
)

func metadataEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

// The value is what kruise-daemon has published for a container without such variables.
func TestMetadataEnvHashIsOpenKruises(t *testing.T) {
	t.Parallel()
	if got := reported.ExpectedEnvHash(&corev1.Container{Name: "nginx"}, &corev1.Pod{}); got != 86995377 {
		t.Errorf("hash of no variables: %d", got)
	}
	pod := &corev1.Pod{}
	pod.Labels, pod.Annotations = map[string]string{"tier": "web"}, map[string]string{"config": "one"}
	app := corev1.Container{Name: "app", Env: []corev1.EnvVar{metadataEnv("CONFIG", "metadata.annotations['config']"), metadataEnv("TIER", "metadata.labels['tier']")}}
	before := reported.ExpectedEnvHash(&app, pod)
	slices.Reverse(app.Env)
	app.Env = append(app.Env, metadataEnv(v1beta1.EnvSidecarSetVersion, "metadata.annotations['version']"), metadataEnv("IP", "status.podIP"))
	if got := reported.ExpectedEnvHash(&app, pod); got != before {
		t.Errorf("%d, want %d: neither order nor other variables count", got, before)
	}
	pod.Annotations["config"] = "two"
	if got := reported.ExpectedEnvHash(&app, pod); got == before {
		t.Error("another value has the same hash")
	}
}
