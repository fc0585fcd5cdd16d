package httpprobe_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/selftest"
	"github.com/refit-project/refit/probe/inpod/httpprobe"
	"github.com/refit-project/refit/signal"
)

// The self-test looks at what one of the endpoints needs, and the plugin does not start without it.
func TestNeedsAreThoseOfItsEndpoints(t *testing.T) {
	t.Parallel()
	const text = `
endpoints:
- name: game
  process: {comm: game}
- name: state
  file: {path: /data/state}
  storageConfig: {inKube: {annotationKey: state}}
- name: nothing
  file: {path: /data/other}
`
	of := func(t *testing.T, text string, with func(*plugin.Host)) (plugin.Needs, error) {
		t.Helper()
		c, err := read(t, text)
		if err != nil {
			t.Fatal(err)
		}
		p, h := httpprobe.New(), host(newResults())
		with(&h)
		err = p.Init(t.Context(), c, h)
		return p.(plugin.Needer).Needs(), err
	}
	if _, err := of(t, text, func(h *plugin.Host) { h.Processes = nil }); err == nil || !strings.Contains(err.Error(), "processes cannot be seen here") {
		t.Errorf("without processes: %v", err)
	}
	needs, err := of(t, text, func(h *plugin.Host) { h.Processes = &signal.FS{} })
	if err != nil {
		t.Fatal(err)
	}
	pod := ownpod.Reference{Version: "v1", Resource: "pods", Namespace: "games", Name: "gs-0"}
	status := pod
	status.Subresource = "status"
	want := plugin.Needs{Signals: true, Access: []selftest.Need{{Verb: "get", Of: pod}, {Verb: "patch", Of: status}}}
	if diff := cmp.Diff(want, needs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	needs, err = of(t, "endpoints: [{file: {path: /a}}]", func(h *plugin.Host) { h.Processes = nil })
	if diff := cmp.Diff(plugin.Needs{}, needs); err != nil || diff != "" {
		t.Errorf("a file that goes nowhere: %v (-want +got):\n%s", err, diff)
	}
}
