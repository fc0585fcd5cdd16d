package upgrade_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
)

func TestMetadataOfRunningPodsChangesWithTheImageByOneWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1", func(c *v1beta1.SidecarContainer) { c.VersionLabel = "version.log" }))
	w.pod.Labels = map[string]string{"tier": "old", "kept": "mine", "missing": "set", "version.log": "1"}
	for key, value := range map[string]string{"retained": "mine", "overwritten": "old", "merged": `{"mine":"a","both":"b"}`, "no-json": "text"} {
		w.pod.Annotations[key] = value
	}
	w.spec(func(s *v1beta1.SidecarSetSpec) {
		s.Containers[0].Image = "log:2"
		s.PatchPodMetadata = []v1beta1.SidecarSetPatchPodMetadata{
			{PatchPolicy: v1beta1.PatchRetain, Annotations: map[string]string{"retained": "set", "absent": "set"}, Labels: map[string]string{"kept": "set", "missing": "set"}},
			{PatchPolicy: v1beta1.PatchOverwrite, Annotations: map[string]string{"overwritten": "set", "new": "set"}, Labels: map[string]string{"tier": "set", "team": "set"}},
			{PatchPolicy: v1beta1.PatchMergeJSON, Annotations: map[string]string{"merged": `{"both":"set","theirs":"c"}`, "no-json": `{"a":"b"}`}},
		}
	})
	if !w.write(w.target.Step(w.pod, true, w.now)) || len(w.writes) != 1 || w.writes[0] != inplace.StepWrite {
		t.Fatalf("writes %v", w.writes)
	}
	for key, want := range map[string]string{
		"retained": "mine", "absent": "set", "overwritten": "set", "new": "set", "merged": `{"mine":"a","both":"set","theirs":"c"}`, "no-json": "text",
	} {
		if got := w.pod.Annotations[key]; got != want {
			t.Errorf("annotation %s: %q, want %q", key, got, want)
		}
	}
	for key, want := range map[string]string{"tier": "set", "team": "set", "kept": "mine", "version.log": "2"} {
		if got := w.pod.Labels[key]; got != want {
			t.Errorf("label %s: %q, want %q", key, got, want)
		}
	}
	w.kubelet()
	w.is("Updated")
	if step, err := w.target.Step(w.pod, true, w.now); step != nil || err != nil {
		t.Errorf("an updated pod is written again: %+v, %v", step, err)
	}
}

// From then on the pod is of the new version; until then the labels say what runs.
func TestMetadataChangesWithTheLastWriteOfAnUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1", requests("100m"), func(c *v1beta1.SidecarContainer) { c.VersionLabel = "version.log" }))
	w.spec(func(s *v1beta1.SidecarSetSpec) {
		s.Containers[0].Image, s.Containers[0].Resources = "log:2", cpu("200m")
		s.PatchPodMetadata = []v1beta1.SidecarSetPatchPodMetadata{{PatchPolicy: v1beta1.PatchOverwrite, Annotations: map[string]string{"team": "a"}, Labels: map[string]string{"team": "a"}}}
	})
	w.write(w.target.Step(w.pod, true, w.now))
	for range 5 {
		if changed := w.pod.Spec.Containers[1].Image == "log:2"; changed != (w.pod.Labels["version.log"] == "2") || changed != (w.pod.Labels["team"] == "a") || changed != (w.pod.Annotations["team"] == "a") {
			t.Errorf("image %s, labels %v, annotation %s", w.pod.Spec.Containers[1].Image, w.pod.Labels, w.pod.Annotations["team"])
		}
		w.now = w.now.Add(time.Second)
		w.kubelet()
		w.write(w.target.Step(w.pod, false, w.now))
	}
	w.is("Updated")
}

func TestMetadataChangesWhereNoContainerDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("mesh", "mesh:1", native))
	w.spec(func(s *v1beta1.SidecarSetSpec) {
		s.InitContainers = append(s.InitContainers, cold("setup", "setup:1")) // runs once, in new pods
		s.PatchPodMetadata = []v1beta1.SidecarSetPatchPodMetadata{{PatchPolicy: v1beta1.PatchOverwrite, Annotations: map[string]string{"team": "a"}, Labels: map[string]string{"team": "a"}}}
	})
	w.update()
	w.is("Updated")
	if w.pod.Labels["team"] != "a" || w.pod.Annotations["team"] != "a" {
		t.Errorf("labels %v, annotation %s", w.pod.Labels, w.pod.Annotations["team"])
	}
}

// Defect 11 of the peer: the annotation keeps the revision of the first update.
func TestUpdateStateNamesTheRevisionOfTheLastUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	for _, image := range []string{"log:2", "log:3", "log:2"} {
		w.image(image)
		w.update()
		want := fmt.Sprintf(`"revision":%q`, w.target.Hashes.Full)
		if state := w.pod.Annotations[v1beta1.AnnotationSidecarSetInPlaceUpdateState]; !strings.Contains(state, want) {
			t.Errorf("%s: %s, want %s", image, state, want)
		}
	}
}

// Defect 21 of the peer: annotations grow.
func TestAnnotationsOfAPodDoNotGrowWithItsUpdates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:00"), cold("proxy", "log:00", hot))
	size := func() (bytes int) {
		for key, value := range w.pod.Annotations {
			bytes += len(key) + len(value)
		}
		return bytes
	}
	var first int
	for i := range 20 {
		w.image(fmt.Sprintf("log:%02d", i+10))
		w.update()
		if i == 1 {
			first = size() // both containers of the hot upgrade have been in use
		}
	}
	if last := size(); last > first+2 { // names of revisions end with numbers
		t.Errorf("%d bytes after 2 updates, %d after 20", first, last)
	}
}
