package httpprobe_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/result/output"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/config"
	"github.com/refit-project/refit/probe/endpoint"
	"github.com/refit-project/refit/probe/inpod/httpprobe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// results keeps what is put.
type results struct {
	mu      sync.Mutex
	entries map[string][]result.Entry
	outputs map[string][]output.Output
	changed chan struct{}
}

func newResults() *results {
	return &results{entries: map[string][]result.Entry{}, outputs: map[string][]output.Output{}, changed: make(chan struct{}, 1)}
}

func (r *results) Put(source string, outputs []output.Output, entry result.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries[source] = append(r.entries[source], entry)
	r.outputs[source] = outputs
	select {
	case r.changed <- struct{}{}:
	default:
	}
}
func (r *results) Drop(string)                         {}
func (r *results) Flush(context.Context, string) error { return nil }

// of are the entries of a source, those that repeat the one before left out.
func (r *results) of(source string) []result.Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	var entries []result.Entry
	for _, e := range r.entries[source] {
		e.At = time.Time{}
		if len(entries) == 0 || entries[len(entries)-1] != e {
			entries = append(entries, e)
		}
	}
	return entries
}

func host(r *results) plugin.Host {
	return plugin.Host{
		Logger: slog.New(slog.DiscardHandler), Pod: identity.Pod{Namespace: "games", Name: "gs-0"},
		Observed: func() *corev1.Pod { return nil }, Results: r, Metrics: prometheus.NewRegistry(),
	}
}

func read(t *testing.T, body string) (any, error) {
	t.Helper()
	text := "plugins:\n- name: http_probe\n  config:\n    " + strings.ReplaceAll(strings.TrimSpace(body), "\n", "\n    ")
	f, err := config.Parse("config.yaml", []byte(text), config.Types{"http_probe": httpprobe.New().ConfigType}, config.Unresolved)
	if err != nil {
		return nil, err
	}
	return f.Plugins[0].Config, nil
}

// The proposal's examples have the plugin's bootorder in the column of an endpoint's keys.
func TestBootOrderOfTheProposalsExamplesIsAccepted(t *testing.T) {
	t.Parallel()
	_, err := read(t, `
startDelaySeconds: 60
endpoints:
  - url: "http://localhost:8080"
    method: "GET"
    timeout: 30
    expectedStatusCode: 200
    storageConfig:
      type: InKube
      inKube:
        annotationKey: http_probe
        target: {group: game.kruise.io, version: v1alpha1, resource: gameservers, name: a, namespace: b}
        jsonPath: /spec/opsState
        markerPolices:
          - {state: idle, labels: {gameserver-idle: 'true'}}
    bootorder: 0
`)
	if err != nil {
		t.Error(err)
	}
}

// start runs the plugin until the test ends.
func start(t *testing.T, r *results, body string) plugin.Plugin {
	t.Helper()
	c, err := read(t, body)
	if err != nil {
		t.Fatal(err)
	}
	p := httpprobe.New()
	if err := p.Init(t.Context(), c, host(r)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Start(ctx) }()
	t.Cleanup(func() {
		if err := p.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return p
}

// The KEP's flow: what the game server says is the state; numbers, objects and spaces do no harm.
func TestProbeCorrectness(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/idle":
			fmt.Fprint(w, " idle\n")
		case "/json":
			fmt.Fprint(w, `{"game":{"players":[3,4],"on":true,"room":{"a":1}}}`)
		case "/found":
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		case "/created":
			w.WriteHeader(http.StatusCreated)
		case "/echo":
			fmt.Fprint(w, r.Method+" "+r.Header.Get("X-Key"))
		case "/slow":
			select {
			case <-r.Context().Done():
			case <-time.After(3 * time.Second):
			}
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(file, []byte("allocated"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		endpoint string
		want     result.Entry
	}{
		"the body is trimmed":   {"url: BASE/idle", result.Entry{State: "Succeeded", Value: "idle", Message: "idle"}},
		"a number":              {"url: BASE/json\njsonPathConfig: {jsonPath: game.players.0}", result.Entry{State: "Succeeded", Value: "3", Message: "3"}},
		"a boolean":             {"url: BASE/json\njsonPathConfig: {jsonPath: game.on, fieldType: boolean}", result.Entry{State: "Succeeded", Value: "true", Message: "true"}},
		"an object":             {"url: BASE/json\njsonPathConfig: {jsonPath: game.room}", result.Entry{State: "Succeeded", Value: `{"a":1}`, Message: `{"a":1}`}},
		"fieldType counts":      {"url: BASE/json\njsonPathConfig: {jsonPath: game.on, fieldType: number}", result.Entry{State: "Failed", Value: "Failed", Message: `result "true" is no number`}},
		"value counts":          {"url: BASE/json\njsonPathConfig: {jsonPath: 'game.players.1', value: 5}", result.Entry{State: "Failed", Value: "Failed", Message: `result "4", want "5"`}},
		"value as expected":     {"url: BASE/json\njsonPathConfig: {jsonPath: 'game.players.1', value: 4}", result.Entry{State: "Succeeded", Value: "4", Message: "4"}},
		"nothing at the path":   {"url: BASE/json\njsonPathConfig: {jsonPath: game.level}", result.Entry{State: "Unknown", Value: "Unknown"}},
		"200 is the default":    {"url: BASE/created", result.Entry{State: "Failed", Value: "Failed", Message: "status 201, want 200"}},
		"expected status":       {"url: BASE/created\nexpectedStatusCode: 201", result.Entry{State: "Succeeded"}},
		"no foreign redirect":   {"url: BASE/found", result.Entry{State: "Failed", Value: "Failed", Message: "status 302, want 200"}},
		"method and headers":    {"url: BASE/echo\nmethod: POST\nheaders: {x-key: secret}", result.Entry{State: "Succeeded", Value: "POST secret", Message: "POST secret"}},
		"the timeout is real":   {"url: BASE/slow\ntimeout: 0.1", result.Entry{State: "Failed", Value: "Failed", Message: "no answer in time"}},
		"tcp":                   {"tcp: {address: ADDRESS}", result.Entry{State: "Succeeded", Value: "connected", Message: "connected"}},
		"grpc, which it is not": {"grpc: {address: '127.0.0.1:1'}", result.Entry{State: "Failed", Value: "Failed"}},
		"exec":                  {"exec: {command: [/bin/echo, full]}", result.Entry{State: "Succeeded", Value: "full", Message: "full"}},
		"file":                  {"file: {path: " + file + ", content: all, maxAgeSeconds: 100}", result.Entry{State: "Succeeded", Value: "allocated", Message: "allocated"}},
		"old file":              {"file: {path: " + file + "x}", result.Entry{State: "Failed", Value: "Failed"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newResults()
			text := strings.NewReplacer("BASE", server.URL, "ADDRESS", strings.TrimPrefix(server.URL, "http://")).Replace(tt.endpoint)
			start(t, r, "startDelaySeconds: 1\nprobeIntervalSeconds: 1\nfailureThreshold: 1\nendpoints:\n- name: e\n  "+strings.ReplaceAll(text, "\n", "\n  ")+
				"\n  storageConfig: {type: InKube, inKube: {annotationKey: a}}")
			<-r.changed
			got := r.of("http_probe/e")[0]
			ignore := cmpopts.IgnoreFields(result.Entry{}, "At")
			if tt.want.Message == "" && tt.want.State != "Succeeded" { // in the words of the library
				ignore = cmpopts.IgnoreFields(result.Entry{}, "At", "Message")
			}
			if diff := cmp.Diff(tt.want, got, ignore); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			want := []output.Output{output.Annotation{Object: output.Pod(identity.Pod{Namespace: "games", Name: "gs-0"}), Key: "a"}}
			if diff := cmp.Diff(want, r.outputs["http_probe/e"]); diff != "" {
				t.Errorf("outputs (-want +got):\n%s", diff)
			}
		})
	}
}

// A server that has died does not stay idle; thresholds and times come from the configuration.
func TestFailuresAreResults(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state")
	synctest.Test(t, func(t *testing.T) {
		r := newResults()
		p := start(t, r, `
startDelaySeconds: 60
probeIntervalSeconds: 5
failureThreshold: 2
endpoints:
- name: e
  file: {path: `+file+`}
  storageConfig: {inKube: {labelKey: state}}
- name: early
  startDelaySeconds: 10
  file: {path: `+file+`}
`)
		set := func(content string) {
			err := os.WriteFile(file, []byte(content), 0o600)
			if content == "" {
				err = os.Remove(file)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		set("idle")
		time.Sleep(59 * time.Second)
		if got := r.of("http_probe/e"); len(got) != 0 {
			t.Errorf("probed before the start delay: %v", got)
		}
		info, _ := p.Status().Info.(map[string]endpoint.Latest)
		if info["early"].Message != "idle" || info["e"].State != "" {
			t.Errorf("status %+v", info)
		}
		time.Sleep(20 * time.Second)
		set("")
		time.Sleep(5 * time.Second)
		idle := result.Entry{State: "Succeeded", Value: "idle", Message: "idle"}
		if diff := cmp.Diff([]result.Entry{idle}, r.of("http_probe/e")); diff != "" {
			t.Errorf("one failure (-want +got):\n%s", diff)
		}
		time.Sleep(10 * time.Second)
		set("allocated")
		time.Sleep(10 * time.Second)
		var got []string
		for _, e := range r.of("http_probe/e") {
			got = append(got, string(e.State)+" "+e.Value)
		}
		if diff := cmp.Diff([]string{"Succeeded idle", "Failed Failed", "Succeeded allocated"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"startDelaySeconds: 1":                                              "endpoints: none",
		"endpoints: [{name: x}]":                                            "exactly one of",
		"endpoints: [{url: 'http://a', tcp: {address: 'a:1'}}]":             "exactly one of",
		"endpoints: [{url: 'ftp://a'}]":                                     "endpoints[0]",
		"endpoints: [{url: 'http://a'}, {url: 'http://a'}]":                 "is there already",
		"endpoints: [{url: 'http://a', timeout: -1}]":                       "timeout",
		"endpoints: [{url: 'http://a', jsonPathConfig: {jsonPath: '{.a'}}]": "jsonPathConfig",
		"endpoints: [{url: 'http://a', storageConfig: {type: InKube}}]":     "needs inKube",
		"endpoints: [{exec: {}}]":                                           "no command",
		"endpoints: [{process: {}}]":                                        "endpoints[0]",
		"endpoints: [{process: {choose: youngest}}]":                        "one of only",
		"endpoints: [{file: {path: ''}}]":                                   "endpoints[0]",
	}
	for text, want := range tests {
		if _, err := read(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v lacks %q", text, err, want)
		}
	}
}
