package workload_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/rollout/workload"
)

// previewed says what would happen to each pod after a change of the template.
func (w *world) previewed(change func(*corev1.PodTemplateSpec)) []string {
	w.t.Helper()
	target := w.target()
	target.Template = target.Template.DeepCopy()
	change(target.Template)
	preview := workload.NewPreview(w.policy, target, slices.Collect(maps.Values(w.pods)), w.now)
	var said []string
	for _, p := range preview.Pods {
		text := p.Name + ": nothing"
		switch {
		case p.Excluded:
			text = p.Name + ": excluded"
		case p.Update != nil:
			text = fmt.Sprintf("%s: %v", p.Name, p.Update.Images())
		case p.Refused != nil:
			text = p.Name + ": refused"
		}
		said = append(said, text)
	}
	if preview.Refused != nil {
		said = append(said, preview.Refused.Refusals[0].Field)
	}
	return said
}

func TestPreviewSaysWhatHappensToEachPod(t *testing.T) {
	t.Parallel()
	variable := func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}} }
	for name, tc := range map[string]struct {
		change func(*corev1.PodTemplateSpec)
		before func(*world)
		want   string
	}{
		"an image":          {image("app:2"), nil, "web-1: map[app:app:2], web-0: map[app:app:2]"},
		"nothing":           {image("app:1"), nil, "web-1: nothing, web-0: nothing"},
		"a variable":        {variable, nil, "web-1: refused, web-0: refused, spec.containers[0].env"},
		"a partition":       {image("app:2"), func(w *world) { *w.statefulSet.Spec.UpdateStrategy.RollingUpdate.Partition = 1 }, "web-1: map[app:app:2], web-0: excluded"},
		"a pod that has it": {image("app:2"), func(w *world) { w.pods["web-1"].Spec.Containers[0].Image = "app:2" }, "web-0: map[app:app:2], web-1: nothing"},
		"a pod not ready":   {image("app:2"), func(w *world) { w.pods["web-0"].Status.Conditions = nil }, "web-0: map[app:app:2], web-1: map[app:app:2]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "StatefulSet", 2)
			if tc.before != nil {
				tc.before(w)
			}
			if got := strings.Join(w.previewed(tc.change), ", "); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// After an undo during an update, pods go back at once, whatever the steps are.
func TestPreviewOfTheTemplateOfBeforeHasNoSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "StatefulSet", 2)
	target := w.target()
	for revision, want := range map[string]bool{target.Revision: true, "another": false} {
		w.policy.Status.CurrentRevision = revision
		if got := workload.NewPreview(w.policy, target, slices.Collect(maps.Values(w.pods)), w.now).WithoutSteps; got != want {
			t.Errorf("current revision %s: without steps %t, want %t", revision, got, want)
		}
	}
}
