package control

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refit-project/refit/api/v1beta1"
)

// unreadable returns the Events about pods that cannot be read, since the last call.
func (w *world) unreadable() (texts []string) {
	for len(w.events) > 0 {
		if text := <-w.events; strings.Contains(text, " PodNotReadable ") {
			texts = append(texts, text)
		}
	}
	return texts
}

// annotate writes an annotation of a pod, as its owner may.
func (w *world) annotate(pod, name, text string) {
	w.t.Helper()
	for _, p := range w.pods() {
		if p.Name == pod {
			p.Annotations[name] = text
			w.check(w.Update(w.t.Context(), &p))
		}
	}
}

// Its owner, who sees the Events of the pod and not the status of the SidecarSet, can repair it.
func TestAPodThatCannotBeReadSaysSoOnceForEachVersionOfTheSidecarSet(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		v1beta1.AnnotationSidecarSetInPlaceUpdateState: `{"logs":{"revision":"%d","nextContainerResources":{"log":{"requests":{"cpu":"1e2147483647"}}}}}`,
		v1beta1.AnnotationSidecarSetHash:               `{"logs": broken %d`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			w.look()
			w.annotate("web-0", name, fmt.Sprintf(text, 0))
			w.change(image("log:2"))
			w.rounds(4)
			got := w.unreadable()
			if len(got) != 1 || !strings.HasPrefix(got[0], "Warning PodNotReadable SidecarSet logs does not update the pod: ") || !strings.Contains(got[0], name) {
				t.Errorf("%q", got)
			}
			for i := range 3 {
				w.annotate("web-0", name, fmt.Sprintf(text, i+1))
				w.rounds(2)
			}
			if got := w.unreadable(); len(got) != 0 {
				t.Errorf("changes of the annotation cause more Events: %q", got)
			}
			w.change(image("log:3"))
			w.rounds(4)
			if got := w.unreadable(); len(got) != 1 {
				t.Errorf("the next version: %q", got)
			}
			if got := w.images(); got["log:3"] != 1 || got["log:1"] != 1 {
				t.Errorf("the other pod is not updated: %v", got)
			}
		})
	}
}
