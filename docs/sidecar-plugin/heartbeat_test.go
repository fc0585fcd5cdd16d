package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/result/output"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/config"
	"github.com/refit-project/refit/sidecarmode"
)

// The plugin's configuration is checked with the rest of the file, including its own rule.
func TestThePluginIsPartOfTheSidecar(t *testing.T) {
	t.Parallel()
	factories := append(sidecarmode.Builtin(), newHeartbeat)
	check := func(config string) error {
		return sidecarmode.Check("config.yaml", []byte("plugins:\n- name: heartbeat\n  config: {"+config+"}\n"), factories)
	}
	if err := check("periodSeconds: 10, storageConfig: {inKube: {labelKey: beat}}"); err != nil {
		t.Error(err)
	}
	for config, want := range map[string]string{
		"storageConfig: {inKube: {labelKey: beat}}": "periodSeconds of 1 or more", "periodSecond: 10": `did you mean "periodSeconds"?`,
		"periodSeconds: 10, storageConfig: {inKube: {labelKye: beat}}": `did you mean "labelKey"?`,
		"periodSeconds: 10, storageConfig: {type: InKube}":             "needs inKube",
	} {
		if err := check(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// stored are results, in place of the writer to the API.
type stored struct {
	puts    []result.Entry
	outputs []output.Output
	dropped bool
}

func (s *stored) Put(_ string, outputs []output.Output, entry result.Entry) {
	s.puts, s.outputs = append(s.puts, entry), outputs
}
func (s *stored) Drop(string)                         { s.dropped = true }
func (s *stored) Flush(context.Context, string) error { return nil }

// The KEP's AddPlugin, PluginStatus, StoreData and RemovePlugin, with the methods for them here.
func TestThePluginIsAddedStoresAndIsRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		results := &stored{}
		manager, err := plugin.NewManager(plugin.Config{Factories: []plugin.Factory{newHeartbeat}, Host: plugin.Host{
			Logger: slog.New(slog.DiscardHandler), Pod: identity.Pod{Namespace: "games", Name: "gs-0"}, Observed: func() *corev1.Pod { return nil }, Results: results,
		}})
		if err != nil {
			t.Fatal(err)
		}
		load := func(text string) {
			t.Helper()
			file, err := config.Parse("config.yaml", []byte(text), manager.Types(), config.Unresolved)
			if err == nil {
				err = manager.LoadConfig(t.Context(), file)
			}
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if err := manager.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		load("plugins:\n- name: heartbeat\n  config: {periodSeconds: 10, storageConfig: {inKube: {labelKey: beat}}}\n")
		if s := manager.Statuses(); len(s) != 1 || s[0].Name != "heartbeat" || s[0].Version != "v0.1.0" || !s[0].Running || !s[0].Healthy {
			t.Errorf("status %+v", s)
		}
		time.Sleep(25 * time.Second)
		synctest.Wait()
		want := []output.Output{output.Label{Object: output.Pod(identity.Pod{Namespace: "games", Name: "gs-0"}), Key: "beat"}}
		if diff := cmp.Diff(want, results.outputs); diff != "" || len(results.puts) != 3 {
			t.Errorf("%d results in 25 s, want 3 (-want +got):\n%s", len(results.puts), diff)
		}
		if needs := manager.Needs().Access; len(needs) != 2 {
			t.Errorf("needs %+v, want to read and to patch the pod", needs)
		}
		load("plugins: []\n")
		if s := manager.Statuses(); len(s) != 0 || !results.dropped {
			t.Errorf("it is still there: %+v, results dropped: %t", s, results.dropped)
		}
		if err := manager.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
