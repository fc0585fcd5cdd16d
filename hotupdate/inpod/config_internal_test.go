package inpod

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hotupdate/inpod/download"
	"github.com/refit-project/refit/hotupdate/inpod/steps"
	"github.com/refit-project/refit/hotupdate/inpod/trigger"
	"github.com/refit-project/refit/hotupdate/payload"
	"github.com/refit-project/refit/plugin"
)

// A restore leaves a tenth of the time to the triggers, if there are any.
func TestReadinessIsDelayedForNoLongerThanConfigured(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	triggers := []trigger.Config{{ConfigMap: "web"}}
	for name, tt := range map[string]struct {
		config          Config
		restored, ready time.Duration
	}{
		"by default":               {Config{}, 300 * time.Second, 300 * time.Second},
		"by default, and triggers": {Config{Triggers: triggers}, 270 * time.Second, 300 * time.Second},
		"as configured":            {Config{Restore: Restore{WaitSeconds: 1.5}}, 1500 * time.Millisecond, 1500 * time.Millisecond},
		"as configured, triggers":  {Config{Restore: Restore{WaitSeconds: 10}, Triggers: triggers}, 9 * time.Second, 10 * time.Second},
	} {
		restored, ready := tt.config.deadlines(now)
		if restored.Sub(now) != tt.restored || ready.Sub(now) != tt.ready {
			t.Errorf("%s: restored within %s, ready within %s", name, restored.Sub(now), ready.Sub(now))
		}
	}
}

func TestPlacesThatAreNotConfigured(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config         Config
		dir, configMap string
	}{
		"none":               {Config{}, "/app/downloads", "sidecar-result"},
		"both":               {Config{FileDir: "/web", Restore: Restore{ConfigMap: "mine"}}, "/web", "mine"},
		"nothing is to last": {Config{Restore: Restore{ConfigMap: "off"}}, "/app/downloads", ""},
	} {
		if dir, configMap := tt.config.dir(), tt.config.configMap(); dir != tt.dir || configMap != tt.configMap {
			t.Errorf("%s: %s, %q", name, dir, configMap)
		}
	}
}

// The way to tell the program that the KEP has comes before the others.
func TestWaysToTellTheProgramInTheirOrder(t *testing.T) {
	t.Parallel()
	sig, request := &steps.Signal{SignalName: "SIGHUP"}, &steps.Request{URL: "http://127.0.0.1"}
	more := []steps.Action{{Touch: "stamp"}}
	for name, tt := range map[string]struct {
		config Config
		want   []steps.Action
		fails  bool
	}{
		"none":                             {Config{LoadPatchType: "none", Signal: sig}, nil, false},
		"others alone":                     {Config{Reload: more}, more, false},
		"a signal":                         {Config{LoadPatchType: "signal", Signal: sig, Request: request}, []steps.Action{{Signal: sig}}, false},
		"a signal, and others":             {Config{LoadPatchType: "signal", Signal: sig, Reload: more}, []steps.Action{{Signal: sig}, more[0]}, false},
		"a request, and others":            {Config{LoadPatchType: "request", Signal: sig, Request: request, Reload: more}, []steps.Action{{Request: request}, more[0]}, false},
		"a signal that is not configured":  {Config{LoadPatchType: "signal", Request: request, Reload: more}, nil, true},
		"a request that is not configured": {Config{LoadPatchType: "request", Signal: sig, Reload: more}, nil, true},
	} {
		got, err := tt.config.chain()
		if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != tt.fails {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// What is configured is what the updates of the folder are made with.
func TestConfigurationIsThatOfTheFolder(t *testing.T) {
	t.Parallel()
	c := Config{
		FileDir: "/web", LoadPatchType: "none", KeepRevisions: 3, MaxFiles: 7, Restore: Restore{StoreQueries: true},
		Precheck: []steps.Action{{Exec: []string{"nginx", "-t"}}}, Verify: &steps.Verify{ForSeconds: 2},
		Fetch: download.Config{
			TimeoutSeconds: 1.5, Attempts: 4, MaxSize: "1Mi", AllowHosts: []string{"cdn.example.org"}, AllowNetworks: []string{"10.0.0.0/8", "fd00::/8"},
		},
	}
	u, err := c.updater(plugin.Host{})
	if err != nil {
		t.Fatal(err)
	}
	if u.Dir != "/web" || u.Keep != 3 || !u.StoreQueries || u.Limits != (payload.Limits{MaxFiles: 7}) || len(u.Precheck) != 1 || len(u.Reload) != 0 || u.Verify.For != 2*time.Second {
		t.Errorf("%+v", u)
	}
	if f := u.Fetch; f.Timeout != 1500*time.Millisecond || f.Attempts != 4 || f.MaxBytes != 1<<20 || f.AllowHosts[0] != "cdn.example.org" ||
		len(f.AllowNetworks) != 2 || f.AllowNetworks[1].String() != "fd00::/8" || f.Header != nil || f.RootCAs != nil {
		t.Errorf("%+v", f)
	}
}
