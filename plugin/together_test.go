package plugin_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/config"
)

// needing is a plugin that needs something of the pod.
type needing struct {
	*actor
	needs plugin.Needs
}

func (n needing) Needs() plugin.Needs { return n.needs }

func TestNeedsAreThoseOfAllPluginsThatRun(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ first, second bool }{"neither": {}, "the first": {first: true}, "the second": {second: true}} {
		synctest.Test(t, func(t *testing.T) {
			var file config.File
			c := plugin.Config{Host: plugin.Host{Logger: slog.New(slog.DiscardHandler)}}
			for _, p := range []struct {
				name    string
				signals bool
			}{{"a", tt.first}, {"b", tt.second}} {
				file.Plugins = append(file.Plugins, config.Plugin{Name: p.name})
				c.Factories = append(c.Factories, func() plugin.Plugin {
					return needing{&actor{name: p.name, diary: &diary{}}, plugin.Needs{Signals: p.signals, Folders: []string{"/" + p.name}}}
				})
			}
			m, err := plugin.NewManager(c)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.LoadConfig(t.Context(), &file); err != nil {
				t.Fatal(err)
			}
			if needs := m.Needs(); len(needs.Folders) > 0 {
				t.Errorf("%s: %+v before the start", name, needs)
			}
			if err := m.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if diff := cmp.Diff(plugin.Needs{Signals: tt.first || tt.second, Folders: []string{"/a", "/b"}}, m.Needs()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if err := m.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAPluginThatDoesNotRunOrIsNotWellIsNotUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, config.File{}, plain("well"),
			func(d *diary) *actor {
				return &actor{name: "ill", diary: d, status: func() plugin.Health { return plugin.Health{Message: "no answer"} }}
			},
			func(d *diary) *actor {
				return &actor{name: "down", diary: d, init: func() error { return errors.New("not yet") }}
			})
		s.start(t)
		want := `
# HELP refit_sidecar_plugin_up 1 while the plugin runs and calls itself healthy.
# TYPE refit_sidecar_plugin_up gauge
refit_sidecar_plugin_up{plugin="down"} 0
refit_sidecar_plugin_up{plugin="ill"} 0
refit_sidecar_plugin_up{plugin="well"} 1
`
		if err := testutil.CollectAndCompare(s.Manager, strings.NewReader(want), "refit_sidecar_plugin_up"); err != nil {
			t.Error(err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
