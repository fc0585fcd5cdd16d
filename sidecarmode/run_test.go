package sidecarmode_test

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/refit-project/refit/sidecarmode"
)

const podPath = "/api/v1/namespaces/games/pods/gs-0"

const base = "server: {address: ADDRESS}\nhealth: HEALTH\n"

func TestSidecarFromStartToEnd(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	files := t.TempDir()
	state := filepath.Join(t.TempDir(), "state")
	write := func(text string) {
		if err := os.WriteFile(state, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("idle\n")
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "one") }))
	defer origin.Close()
	s.mount(base + `
plugins:
- name: http_probe
  config:
    startDelaySeconds: 1
    probeIntervalSeconds: 1
    failureThreshold: 1
    endpoints:
    - name: room
      file: {path: ` + state + `}
      storageConfig:
        inKube:
          labelKey: room-${POD:ROOM}
          conditionType: game.kruise.io/idle
          markerPolices: [{state: idle, annotations: {cost: "-10"}}, {state: unknown, annotations: {cost: "5"}}]
- name: hot_update
  bootOrder: 1
  config:
    fileDir: ` + files + `
    loadPatchType: none
    fetch: {allowNetworks: [127.0.0.0/8]}
    storageConfig: {inKube: {annotationKey: hot-update-result}}
`)
	s.start()
	s.until("ready", func() bool { code, _ := s.call(http.MethodGet, s.health, "/readyz"); return code == 200 })
	// What that keeps out is in TestFilesOfTheSidecarAreClosedToProcessesOfItsUser. Nothing but Run sets it here.
	if dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || dumpable != 0 {
		t.Errorf("PR_GET_DUMPABLE %d, %v: programs of the same user read its files", dumpable, err)
	}
	s.until("labelled", func() bool {
		p := s.api.pod()
		return p.Labels["room-blue"] == "idle" && p.Annotations["cost"] == "-10" && strings.HasPrefix(condition(p, "game.kruise.io/idle"), "True")
	})
	s.until("self-test told", func() bool { return condition(s.api.pod(), "refit.dev/SidecarSelfTest") != "none" })
	if code, said := s.call(http.MethodPost, s.address, "/hot-update?version=v1&url="+origin.URL+"/f"); code != 200 {
		t.Fatalf("%d %s", code, said)
	}
	if b, err := os.ReadFile(filepath.Join(files, "f")); err != nil || string(b) != "one" {
		t.Errorf("%s %v", b, err)
	}
	s.until("annotated", func() bool { return s.api.pod().Annotations["hot-update-result"] == "v1: Update success" })
	s.api.mu.Lock()
	before := s.api.patches[podPath+"/status"]
	s.api.mu.Unlock()
	<-time.After(3 * time.Second) // of probes that say the same
	s.api.mu.Lock()
	if after := s.api.patches[podPath+"/status"]; after != before {
		t.Errorf("%d patches without a change", after-before)
	}
	if n := s.api.patches[podPath]; n != 0 {
		t.Errorf("%d patches of the pod itself, which a role for its status does not allow", n)
	}
	s.api.mu.Unlock()
	if err := os.Remove(state); err != nil {
		t.Fatal(err)
	}
	s.until("the mark of unknown", func() bool { return s.api.pod().Annotations["cost"] == "5" })
	code, said := s.call(http.MethodGet, s.address, "/status")
	for _, part := range []string{`"hot_update"`, `"http_probe"`, `"selfTest"`, `"ready": true`, `"v1"`} {
		if code != 200 || !strings.Contains(said, part) {
			t.Errorf("status lacks %s: %d %s", part, code, said)
		}
	}
	// Each endpoint is where it belongs, and the metrics of all plugins are together.
	_, metrics := s.call(http.MethodGet, s.health, "/metrics")
	for _, part := range []string{"refit_sidecar_plugin_up{plugin=\"hot_update\"} 1", "refit_sidecar_hot_updates_total{result=\"accepted\"} 1",
		"refit_sidecar_probe_results_total", "refit_sidecar_config_last_reload_successful 1", "refit_sidecar_self_test"} {
		if !strings.Contains(metrics, part) {
			t.Errorf("metrics lack %s", part)
		}
	}
	for address, path := range map[string]string{s.health: "/hot-update", s.address: "/metrics"} {
		if code, _ := s.call(http.MethodPost, address, path); code != 404 {
			t.Errorf("%s%s: %d", address, path, code)
		}
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
}

func TestConfigurationIsReloaded(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	probe := func(name string) string {
		return base + "plugins:\n- name: http_probe\n  config: {endpoints: [{name: " + name + ", tcp: {address: '127.0.0.1:1'}}]}\n"
	}
	s.mount(probe("first"))
	s.start()
	status := func() string { _, said := s.call(http.MethodGet, s.address, "/status"); return said }
	metric := func() string { _, said := s.call(http.MethodGet, s.health, "/metrics"); return said }
	s.until("up", func() bool { return strings.Contains(metric(), "last_reload_successful 1") })
	s.mount(strings.Replace(probe("second"), "endpoints", "endpionts", 1))
	s.until("refused", func() bool { return strings.Contains(metric(), "last_reload_successful 0") })
	s.until("said in Event and status", func() bool {
		return s.api.saidEvent("ConfigInvalid") && s.api.saidEvent(`did you mean \"endpoints\"`) || s.api.saidEvent(`did you mean "endpoints"`)
	})
	if said := status(); !strings.Contains(said, "unknown key") || !strings.Contains(said, `"running": true`) {
		t.Errorf("status %s", said)
	}
	s.mount(probe("third"))
	s.until("taken over", func() bool { return strings.Contains(metric(), "last_reload_successful 1") })
	if said := status(); strings.Contains(said, "unknown key") || !s.api.saidEvent("ConfigReloaded") {
		s.until("event", func() bool { return s.api.saidEvent("ConfigReloaded") })
	}
	s.mount(probe("third") + "- name: pod_probe\n")
	s.until("another plugin runs", func() bool { return strings.Contains(status(), `"pod_probe"`) })
	s.mount(strings.Replace(probe("third"), "health: HEALTH", "health: 'off'", 1))
	s.until("what waits for a restart is told", func() bool {
		return strings.Contains(status(), "afterRestart") && s.api.saidEvent("a restart of the sidecar is needed for health")
	})
}

// It keeps no former configuration, so the reason why it ends has to be found where a user looks: at the pod.
func TestSidecarThatCannotStartWithItsConfigurationSaysSo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plugins:\n- name: http_probe\n  config: {endpionts: []}\n":                          "did you mean",
		"plugins:\n- name: hot_update\n  config: {loadPatchType: none, fileDir: relative}\n": "not an absolute path",
	} {
		s := newStage(t)
		s.mount(base + text)
		if err := s.run(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ended with %v, want %s", err, want)
		}
		for _, part := range []string{"ConfigInvalid", "the sidecar cannot start", want} {
			if !s.api.saidEvent(part) {
				t.Errorf("no Event with %s", part)
			}
		}
	}
}

// Who cannot show the token does nothing; an empty token lets nobody in.
func TestOwnAPIAsksForTheToken(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	token := filepath.Join(t.TempDir(), "token")
	s.mount("server: {address: ADDRESS, tokenFile: " + token + "}\nhealth: HEALTH\nplugins: [{name: hot_update, config: {fileDir: " + t.TempDir() + ", loadPatchType: none}}]\n")
	s.start()
	s.until("ready", func() bool { code, _ := s.call(http.MethodGet, s.health, "/readyz"); return code == 200 })
	check := func(why, send string, want int) {
		t.Helper()
		s.token = send
		for _, path := range []string{"/hot-update", "/status", "/rollback", "/revisions", "/"} {
			if code, said := s.call(http.MethodPost, s.address, path); code != want && (want != 0 || code == 401 || code == 503) {
				t.Errorf("%s: %s: %d %s", why, path, code, said)
			}
		}
	}
	check("no token file", "", 503)
	if err := os.WriteFile(token, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("empty token", "", 503)
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("none sent", "", 401)
	check("another sent", "secre", 401)
	check("the right one", "secret", 0)
}

func TestStartFailsWithReasons(t *testing.T) {
	t.Parallel()
	good := sidecarmode.Config{Namespace: "n", Pod: "p", Grace: time.Second, Logger: slog.New(slog.DiscardHandler)}
	if err := sidecarmode.Run(t.Context(), sidecarmode.Config{}); err == nil || !strings.Contains(err.Error(), "POD_NAME") ||
		!strings.Contains(err.Error(), "POD_NAMESPACE") || !strings.Contains(err.Error(), "grace") {
		t.Errorf("%v", err)
	}
	good.File = filepath.Join(t.TempDir(), "none.yaml")
	if err := sidecarmode.Run(t.Context(), good); err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(good.File, []byte("plugins: [{name: hot_updat}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sidecarmode.Run(t.Context(), good); err == nil || !strings.Contains(err.Error(), `did you mean "hot_update"?`) {
		t.Errorf("%v", err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	if err := os.WriteFile(good.File, []byte("plugins: []\nhealth: 'off'\nserver: {address: '"+taken.Addr().String()+"'}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sidecarmode.Run(t.Context(), good); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("%v", err)
	}
}

// A ConfigMap holds no more; a file in its place may be anything.
func TestConfigurationThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	good := sidecarmode.Config{Namespace: "n", Pod: "p", Grace: time.Second, Logger: slog.New(slog.DiscardHandler), File: filepath.Join(t.TempDir(), "config.yaml")}
	text := "plugins: [{name: none}]\n"
	for size, want := range map[int]string{1 << 20: "unknown plugin", 1<<20 + 1: "more than 1048576"} {
		if err := os.WriteFile(good.File, []byte(text+"#"+strings.Repeat("x", size-len(text)-1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := sidecarmode.Run(t.Context(), good); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %.300v", size, err)
		}
	}
}
