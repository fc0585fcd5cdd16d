package annotation_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/revision"
)

func podWith(key, value string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: value}}}
}

func TestAnnotationsOfOpenKruiseAreRead(t *testing.T) {
	t.Parallel()
	pod := podWith(v1beta1.AnnotationSidecarSetHash, `{"log":{"updateTimestamp":"2026-01-02T03:04:05Z","hash":"full","sidecarSetName":"log","sidecarList":["agent"],"controllerRevision":"log-6d9f7c8b5d"},`+
		`"old":"bare","broken":1}`)
	pod.Annotations[v1beta1.AnnotationSidecarSetHashWithoutImage] = `{"log":{"hash":"bare"},"old":"other"}`
	if got := annotation.Of(pod, "log"); got.Hash != "full" || got.WithoutImage != "bare" || got.ControllerRevision != "log-6d9f7c8b5d" || got.SidecarList[0] != "agent" {
		t.Errorf("%+v", got)
	}
	if got := annotation.Of(pod, "old"); got.Hash != "bare" || got.WithoutImage != "other" {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{"broken", "none"} {
		if got := annotation.Of(pod, name); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWrittenAnnotationsKeepThoseOfOthers(t *testing.T) {
	t.Parallel()
	pod := podWith(v1beta1.AnnotationSidecarSetHash, `{"mesh":{"hash":"m","newer":"field"}}`)
	pod.Annotations[v1beta1.AnnotationSidecarSetList] = "mesh"
	version := &annotation.Version{SidecarSet: "log", Revision: "log-1", Hashes: revision.Hashes{Full: "f", WithoutImage: "w"}, Sidecars: []string{"agent"}}
	pod.Annotations = annotation.Write(pod, version, metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)))
	if text := pod.Annotations[v1beta1.AnnotationSidecarSetHash]; !strings.Contains(text, `"newer":"field"`) || !strings.Contains(text,
		`"log":{"updateTimestamp":"2026-01-02T03:04:05Z","hash":"f","sidecarSetName":"log","sidecarList":["agent"],"controllerRevision":"log-1"}`) {
		t.Error(text)
	}
	if text := pod.Annotations[v1beta1.AnnotationSidecarSetHashWithoutImage]; strings.Contains(text, "controllerRevision") {
		t.Error(text)
	}
	for range 2 { // a pod that is updated names it already
		if names := annotation.Names(pod); !slices.Equal(names, []string{"log", "mesh"}) {
			t.Errorf("names %v", names)
		}
		pod.Annotations = annotation.Write(pod, version, metav1.Now())
	}
}

func TestWorkingContainers(t *testing.T) {
	t.Parallel()
	pod := podWith(v1beta1.AnnotationHotUpgradeWorking, `{"proxy":"proxy-2"}`)
	if got := annotation.WriteWorking(pod, map[string]string{"mesh": "mesh-1"}); got != `{"mesh":"mesh-1","proxy":"proxy-2"}` {
		t.Error(got)
	}
	if got := annotation.Working(podWith(v1beta1.AnnotationHotUpgradeWorking, "broken")); got != nil {
		t.Error(got)
	}
}

func TestSidecarsAreContainersAndNativeSidecars(t *testing.T) {
	t.Parallel()
	spec := &v1beta1.SidecarSetSpec{
		Containers: []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "log"}}},
		InitContainers: []v1beta1.SidecarContainer{
			{Container: corev1.Container{Name: "setup"}},
			{Container: corev1.Container{Name: "agent", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}},
		},
	}
	if got := annotation.Sidecars(spec); !slices.Equal(got, []string{"agent", "log"}) {
		t.Error(got)
	}
}

// Owners of pods can write what they like into these annotations.
func FuzzAnnotationsOfPods(f *testing.F) {
	f.Add(`{"log":{"hash":"x","sidecarList":["a"]}}`)
	f.Add(`{"log":"x"}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, text string) {
		pod := podWith(v1beta1.AnnotationSidecarSetHash, text)
		pod.Annotations[v1beta1.AnnotationHotUpgradeWorking], pod.Annotations[v1beta1.AnnotationSidecarSetHashWithoutImage] = text, text
		annotation.Of(pod, "log")
		annotation.Working(pod)
		written := annotation.Write(pod, &annotation.Version{SidecarSet: "log", Hashes: revision.Hashes{Full: "f"}}, metav1.Now())
		if !json.Valid([]byte(written[v1beta1.AnnotationSidecarSetHash])) || !json.Valid([]byte(annotation.WriteWorking(pod, map[string]string{"a": "b"}))) {
			t.Errorf("%v", written)
		}
		pod.Annotations = written
		if got := annotation.Of(pod, "log"); got == nil || got.Hash != "f" {
			t.Errorf("%+v", got)
		}
	})
}
