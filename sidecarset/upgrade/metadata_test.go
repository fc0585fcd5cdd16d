package upgrade_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
)

func TestMetadataOfRunningPodsChangesWithTheImageByOneWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1", func(c *v1beta1.SidecarContainer) { c.VersionLabel = "version.log" }))
	w.pod.Labels = map[string]string{"tier": "old", "kept": "mine", "version.log": "1"}
	for key, value := range map[string]string{"retained": "mine", "overwritten": "old", "merged": `{"mine":"a","both":"b"}`, "no-json": "text"} {
		w.pod.Annotations[key] = value
	}
	w.spec(func(s *v1beta1.SidecarSetSpec) {
		s.Containers[0].Image = "log:2"
		s.PatchPodMetadata = []v1beta1.SidecarSetPatchPodMetadata{
			{PatchPolicy: v1beta1.PatchRetain, Annotations: map[string]string{"retained": "set", "absent": "set"}, Labels: map[string]string{"kept": "set"}},
			{PatchPolicy: v1beta1.PatchOverwrite, Annotations: map[string]string{"overwritten": "set", "new": "set"}, Labels: map[string]string{"tier": "set", "team": "set"}},
			{PatchPolicy: v1beta1.PatchMergeJSON, Annotations: map[string]string{"merged": `{"both":"set","theirs":"c"}`, "no-json": `{"a":"b"}`}},
		}
	})
	if !w.write(w.target.Begin(w.pod, w.now)) || len(w.writes) != 1 || w.writes[0] != inplace.StepWrite {
		t.Fatalf("writes %v", w.writes)
	}
	for key, want := range map[string]string{
		"retained": "mine", "absent": "", "overwritten": "set", "new": "set", "merged": `{"mine":"a","both":"set","theirs":"c"}`, "no-json": "text",
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
	if step, err := w.target.Begin(w.pod, w.now); step != nil || err != nil {
		t.Errorf("an updated pod is written again: %+v, %v", step, err)
	}
}

// Defect 11 of the peer: the revision in the annotation stays that of the first update.
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
	if last := size(); last > first {
		t.Errorf("%d bytes after 2 updates, %d after 20", first, last)
	}
}
