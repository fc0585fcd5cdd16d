package plugin_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/internal/result/output"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/config"
	"github.com/refit-project/refit/plugin/selftest"
)

// The self-test checks the needs of all plugins.
func TestNeedsAreThoseOfAllPlugins(t *testing.T) {
	t.Parallel()
	needing := func(name string, needs plugin.Needs) func(*diary) *actor {
		return func(d *diary) *actor { return &actor{name: name, diary: d, needs: needs} }
	}
	get := selftest.Need{Verb: "get", Of: ownpod.Reference{Version: "v1", Resource: "pods"}}
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, config.File{},
			needing("a", plugin.Needs{Signals: true, Access: []selftest.Need{get}, Folders: []string{"/a"}}),
			needing("b", plugin.Needs{Folders: []string{"/b"}}))
		if diff := cmp.Diff(plugin.Needs{}, s.Needs()); diff != "" {
			t.Errorf("before it is known (-want +got):\n%s", diff)
		}
		s.start(t)
		want := plugin.Needs{Signals: true, Access: []selftest.Need{get}, Folders: []string{"/a", "/b"}}
		if diff := cmp.Diff(want, s.Needs()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A pod is written through its status, for which RBAC has a rule of its own.
func TestNeedsOfOutputsNameTheSubresource(t *testing.T) {
	t.Parallel()
	pod := output.Pod(identity.Pod{Namespace: "games", Name: "gs-0"})
	of := ownpod.Reference{Version: "v1", Resource: "pods", Namespace: "games", Name: "gs-0"}
	status := of
	status.Subresource = "status"
	got := plugin.NeedsOf([]output.Output{output.Annotation{Object: pod, Key: "a"}, output.Annotation{Object: pod, Key: "b"}})
	if diff := cmp.Diff([]selftest.Need{{Verb: "get", Of: of}, {Verb: "patch", Of: status}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
