package upgrade_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/test/kit/hostile"
	"github.com/refit-project/refit/test/kit/watchdog"
)

// FuzzJudge makes what a pod says of its sidecars of parts: it is judged and updated, or not upgradable, within bounds.
func FuzzJudge(f *testing.F) {
	for _, seed := range hostile.Seeds() {
		f.Add(seed, []byte{1}, []byte{1}, "1")
		f.Add([]byte{1}, seed, []byte{1}, "1")
		f.Add([]byte{1}, []byte{1}, seed, "1")
	}
	for _, text := range hostile.Texts {
		f.Add([]byte{1}, []byte{}, []byte{}, text)
	}
	f.Fuzz(func(t *testing.T, record, pod, entry []byte, text string) {
		for _, upgraded := range []func(*v1beta1.SidecarContainer){func(*v1beta1.SidecarContainer) {}, native, hot} {
			w := newWorld(t, cold("app-log", "log:1", upgraded, requests("100m")))
			w.spec(func(s *v1beta1.SidecarSetSpec) {
				for i := range s.Containers {
					s.Containers[i].Image, s.Containers[i].Resources = "log:2", cpu("200m")
				}
			})
			w.forged(record, pod, entry, text)
			watchdog.Watch(t, func() { w.bounded() })
		}
	})
}

// forged makes the pod say what the bytes and the text say.
func (w *world) forged(record, pod, entry []byte, text string) {
	state := hostile.JSON(v1beta1.InPlaceUpdateState{}, record)
	for name, value := range map[string]string{
		v1beta1.AnnotationSidecarSetInPlaceUpdateState:   `{"logs":` + string(state) + `}`,
		v1beta1.AnnotationInPlaceUpdateState:             string(state),
		v1beta1.AnnotationRuntimeContainersMeta:          string(hostile.JSON(v1beta1.RuntimeContainerMetaSet{}, record)),
		v1beta1.AnnotationSidecarSetAborted:              `{"logs":"` + w.target.Hashes.Full + `","app":"` + text + `"}`,
		v1beta1.PrefixSidecarSetVersion + "app-log-1":    text,
		v1beta1.PrefixSidecarSetVersionAlt + "app-log-1": text,
	} {
		w.pod.Annotations[name] = value
	}
	if len(entry) > 0 {
		w.pod.Annotations[v1beta1.AnnotationSidecarSetHash] = `{"logs":` + string(hostile.JSON(annotation.Entry{}, entry)) + `}`
		w.pod.Annotations[v1beta1.AnnotationHotUpgradeWorking] = string(hostile.JSON(map[string]string{}, entry))
	}
	var parts corev1.Pod
	if len(pod) > 0 && foreign.Object(hostile.JSON(parts, pod), &parts) == nil {
		w.pod.Status, w.pod.Spec.Containers[0].Resources = parts.Status, corev1.ResourceRequirements{}
		if len(parts.Spec.Containers) > 0 {
			w.pod.Spec.Containers[0].Resources = parts.Spec.Containers[0].Resources
		}
	}
}

// bounded judges the pod, and fails the test if what would be written or said about it has no bound.
func (w *world) bounded() {
	w.t.Helper()
	v := w.judge()
	if len(v.Message) > 4<<10 || !utf8.ValidString(v.Message) {
		w.t.Errorf("a message of %d bytes: %.300q", len(v.Message), v.Message)
	}
	size := 0
	for _, text := range w.pod.Annotations {
		size += len(text)
	}
	for _, begin := range []bool{true, false} {
		step, err := w.target.Step(w.pod, begin, w.now)
		if err != nil || step == nil {
			continue
		}
		if v.Unreadable {
			w.t.Errorf("a pod that is not readable is written: %s", step.Patch())
		}
		if patch := step.Patch(); !json.Valid(patch) || len(patch) > 10*size+10_000 {
			w.t.Errorf("a patch of %d bytes for annotations of %d: %.300s", len(patch), size, patch)
		}
	}
}
