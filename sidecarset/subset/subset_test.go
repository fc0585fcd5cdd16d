package subset_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/sidecarset/subset"
)

func TestDefaultsAndOtherWebhooksAreNoDifference(t *testing.T) {
	t.Parallel()
	wanted := corev1.Container{
		Name: "a", Image: "a:1", Args: []string{"-x"}, Env: []corev1.EnvVar{{Name: "A", Value: "1"}},
		VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}},
		Resources:    corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("0.5")}},
	}
	for has, want := range map[string]bool{
		`{"name":"a","image":"a:1","args":["-x"],"env":[{"name":"B","value":"2"},{"name":"A","value":"1"}],"volumeMounts":[{"name":"token","mountPath":"/t"},{"name":"v","mountPath":"/v","readOnly":false}],"resources":{"limits":{"cpu":"500m","memory":"1Gi"}},"imagePullPolicy":"Always"}`: true,
		`{"name":"a","image":"a:2","args":["-x"],"env":[{"name":"A","value":"1"}],"volumeMounts":[{"name":"v","mountPath":"/v"}],"resources":{"limits":{"cpu":"500m"}}}`:                                                                                                                       false,
		`{"name":"a","image":"a:1","args":["-x","-y"],"env":[{"name":"A","value":"1"}],"volumeMounts":[{"name":"v","mountPath":"/v"}],"resources":{"limits":{"cpu":"500m"}}}`:                                                                                                                  false,
		`{"name":"a","image":"a:1","args":["-x"],"env":[{"name":"A","value":"2"}],"volumeMounts":[{"name":"v","mountPath":"/v"}],"resources":{"limits":{"cpu":"500m"}}}`:                                                                                                                       false,
		`{"name":"a","image":"a:1","args":["-x"],"env":[{"name":"A","value":"1"}],"volumeMounts":[{"name":"w","mountPath":"/v"}],"resources":{"limits":{"cpu":"500m"}}}`:                                                                                                                       false,
		`not JSON`: false,
	} {
		if got := subset.Covers([]byte(has), wanted); got != want {
			t.Errorf("%t for %s", got, has)
		}
	}
}

func TestAnEmptyVolumeSourceIsNotAnotherOne(t *testing.T) {
	t.Parallel()
	wanted := corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	if subset.Covers([]byte(`{"name":"v","hostPath":{"path":"/"}}`), wanted) {
		t.Error("hostPath is taken for emptyDir")
	}
	if !subset.Covers([]byte(`{"name":"v","emptyDir":{"medium":""}}`), wanted) {
		t.Error("emptyDir is not")
	}
}
