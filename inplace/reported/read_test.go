package reported_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/kubelet"
)

func podWith(annotation string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Name, pod.Annotations = "web", map[string]string{v1beta1.AnnotationRuntimeContainersMeta: annotation}
	return pod
}

func TestAReportIsOfExactlyOneInstance(t *testing.T) {
	t.Parallel()
	known, err := reported.Read(podWith(`{"containers":[{"name":"app","containerID":"c://1","hashes":{"plainHash":7}},{"name":"log","containerID":""}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		status corev1.ContainerStatus
		hash   uint64
		known  bool
	}{
		"the instance":      {corev1.ContainerStatus{Name: "app", ContainerID: "c://1"}, 7, true},
		"another instance":  {corev1.ContainerStatus{Name: "app", ContainerID: "c://2"}, 7, false},
		"another container": {corev1.ContainerStatus{Name: "db", ContainerID: "c://1"}, 0, false},
		"none has started":  {corev1.ContainerStatus{Name: "log"}, 0, false},
	} {
		hashes, ok := known.Of(&tt.status)
		if ok != tt.known || ok && hashes.PlainHash != tt.hash {
			t.Errorf("%s: %+v, %t", name, hashes, ok)
		}
	}
}

func TestNoReportIsNotAnError(t *testing.T) {
	t.Parallel()
	if known, err := reported.Read(&corev1.Pod{}); err != nil || len(known) != 0 {
		t.Errorf("%v, %v", known, err)
	}
	if _, err := reported.Read(podWith(`{"containers":`)); !errors.Is(err, reported.ErrMalformed) || !strings.Contains(err.Error(), "of pod web") {
		t.Errorf("%v: want ErrMalformed with the name of the pod", err)
	}
}

func TestInstanceIsComparedWithTheSpec(t *testing.T) {
	t.Parallel()
	for version, hashOf := range map[string]func(*corev1.Container) string{"1.30": kubelet.WholeContainerHash, "1.31": kubelet.ContainerHash} {
		app := &corev1.Container{Name: "app", Image: "app:1", Args: []string{"serve"}}
		hash, err := strconv.ParseUint(hashOf(app), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		made := v1beta1.RuntimeContainerHashes{PlainHash: hash}
		if !reported.SameHash(made, app) {
			t.Errorf("kubelet %s: an instance of the container in the spec is taken for another", version)
		}
		app.Image = "app:2"
		if reported.SameHash(made, app) {
			t.Errorf("kubelet %s: an instance of another image is taken for one of the spec", version)
		}
	}
}

// Only variables whose value is a label or an annotation count: others do not change with the metadata.
func TestVariablesThatComeFromMetadata(t *testing.T) {
	t.Parallel()
	container := &corev1.Container{Env: []corev1.EnvVar{
		{Name: "PLAIN", Value: "x"},
		{Name: "EMPTY"},
		metadataEnv("OPEN", "metadata.labels['tier"),
		metadataEnv("TIER", "metadata.labels['tier']"),
		metadataEnv("CONFIG", "metadata.annotations['config']"),
		metadataEnv("NAME", "metadata.name"),
		metadataEnv("OTHER", "status.conditions['x']"),
		metadataEnv("ALL", "metadata.labels"),
		metadataEnv(v1beta1.EnvSidecarSetVersion, "metadata.annotations['version']"),
		metadataEnv(v1beta1.EnvSidecarSetVersionAlt, "metadata.annotations['alt']"),
		{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}},
	}}
	got := reported.MetadataEnvs(container)
	want := []reported.MetadataEnv{{Name: "TIER", Key: "tier"}, {Name: "CONFIG", Key: "config", Annotation: true}}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v, want %+v", got, want)
	}
}
