package sidecarmode_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/rest"

	"github.com/refit-project/refit/sidecarmode"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// apiServer has one pod and other objects, by path, and counts what is written.
type apiServer struct {
	mu      sync.Mutex
	objects map[string]string
	patches map[string]int
	events  []string
	version int
	watches []chan string // of the pod
	// refused is a path that may not be patched.
	refused string
}

const podPath = "/api/v1/namespaces/games/pods/gs-0"

func newAPIServer() *apiServer {
	return &apiServer{patches: map[string]int{}, objects: map[string]string{
		podPath: `{"metadata":{"name":"gs-0","namespace":"games","uid":"u-1","resourceVersion":"1"},"spec":{"containers":[
			{"name":"app","env":[{"name":"ROOM","value":"blue"}]},{"name":"refit-sidecar"}]},"status":{"podIP":"127.0.0.1"}}`,
	}}
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	path := strings.TrimSuffix(r.URL.Path, "/status")
	document, known := a.objects[path]
	switch {
	case strings.HasSuffix(path, "selfsubjectaccessreviews"):
		fmt.Fprint(w, `{"status":{"allowed":true}}`)
	case strings.HasSuffix(path, "/events"):
		var e corev1.Event
		_ = json.NewDecoder(r.Body).Decode(&e)
		a.events = append(a.events, e.Reason+" "+e.Message)
		fmt.Fprint(w, `{}`)
	case r.URL.Query().Get("watch") == "true":
		a.watch(w, r)
	case path == "/api/v1/namespaces/games/pods":
		fmt.Fprintf(w, `{"metadata":{"resourceVersion":"%d"},"items":[%s]}`, 1+a.version, a.objects[podPath])
	case !known:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	case r.Method == http.MethodPatch && a.refused != "" && strings.HasPrefix(path, a.refused):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	case r.Method == http.MethodPatch:
		body, _ := io.ReadAll(r.Body)
		a.patches[r.URL.Path]++
		patched, err := jsonpatch.MergePatch([]byte(document), body)
		if strings.Contains(r.Header.Get("Content-Type"), "strategic") {
			patched, err = strategicpatch.StrategicMergePatch([]byte(document), body, corev1.Pod{})
		}
		if err != nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		a.put(path, string(patched))
		fmt.Fprint(w, a.objects[path])
	default:
		fmt.Fprint(w, document)
	}
}

func (a *apiServer) watch(w http.ResponseWriter, r *http.Request) {
	changes := make(chan string, 100)
	a.watches = append(a.watches, changes)
	if r.URL.Query().Get("resourceVersion") != fmt.Sprint(1+a.version) { // what has come since the list
		changes <- a.objects[podPath]
	}
	a.mu.Unlock()
	defer a.mu.Lock()
	w.WriteHeader(http.StatusOK)
	for {
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case c := <-changes:
			fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`, c)
		}
	}
}

// put stores an object; with the lock held.
func (a *apiServer) put(path, document string) {
	a.version++
	var o map[string]any
	_ = json.Unmarshal([]byte(document), &o)
	o["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(1 + a.version)
	b, _ := json.Marshal(o)
	a.objects[path] = string(b)
	if path == podPath {
		for _, watch := range a.watches {
			select {
			case watch <- string(b):
			default:
			}
		}
	}
}

func (a *apiServer) pod() corev1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	var p corev1.Pod
	_ = json.Unmarshal([]byte(a.objects[podPath]), &p)
	return p
}

func (a *apiServer) saidEvent(part string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Contains(strings.Join(a.events, "\n"), part)
}

func condition(p corev1.Pod, kind string) string {
	for _, c := range p.Status.Conditions {
		if string(c.Type) == kind {
			return string(c.Status) + " " + c.Message
		}
	}
	return "none"
}

// stage is a sidecar in a pod.
type stage struct {
	t            *testing.T
	dir          string // of the mounted configuration
	api          *apiServer
	address      string
	health       string
	token        string
	end          func() error
	log          *strings.Builder
	loggedLocked sync.Mutex
}

// freeAddress has a loopback address of its own, so that nobody else takes its port before it is used.
func freeAddress(t *testing.T) string {
	t.Helper()
	host := net.IPv4(127, byte(1+rand.N(250)), byte(rand.N(250)), byte(1+rand.N(250))).String()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return address
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return &stage{t: t, dir: t.TempDir(), api: newAPIServer(), address: freeAddress(t), health: freeAddress(t), log: &strings.Builder{}}
}

// mount puts the configuration in place as kubelet does.
func (s *stage) mount(text string) {
	s.t.Helper()
	text = strings.NewReplacer("ADDRESS", s.address, "HEALTH", s.health, "DIR", s.dir).Replace(text)
	data, err := os.MkdirTemp(s.dir, "..")
	if err == nil {
		err = os.WriteFile(filepath.Join(data, "config.yaml"), []byte(text), 0o600)
	}
	if err == nil {
		err = os.Symlink(filepath.Base(data), filepath.Join(s.dir, "..data_tmp"))
	}
	if err == nil {
		err = os.Rename(filepath.Join(s.dir, "..data_tmp"), filepath.Join(s.dir, "..data"))
	}
	if err == nil {
		_ = os.Symlink("..data/config.yaml", filepath.Join(s.dir, "config.yaml"))
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) start() *stage {
	s.t.Helper()
	server := httptest.NewServer(s.api)
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	done := make(chan error, 1)
	config := sidecarmode.Config{
		File: filepath.Join(s.dir, "config.yaml"), Namespace: "games", Pod: "gs-0", Container: "refit-sidecar",
		API: &rest.Config{Host: server.URL, QPS: 1000, Burst: 1000}, Grace: 5 * time.Second, Version: "v0", Logger: slog.New(slog.NewTextHandler(s, nil)),
	}
	go func() { done <- sidecarmode.Run(ctx, config) }()
	s.end = sync.OnceValue(func() error {
		cancel()
		err := <-done
		server.CloseClientConnections()
		server.Close()
		return err
	})
	s.t.Cleanup(func() {
		if err := s.end(); err != nil {
			s.t.Error(err)
		}
	})
	return s
}

// Write implements io.Writer for the log.
func (s *stage) Write(b []byte) (int, error) {
	s.loggedLocked.Lock()
	defer s.loggedLocked.Unlock()
	return s.log.Write(b)
}

func (s *stage) until(what string, is func() bool) {
	s.t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	timeout := time.After(20 * time.Second)
	for !is() {
		select {
		case <-ticker.C:
		case <-timeout:
			s.loggedLocked.Lock()
			defer s.loggedLocked.Unlock()
			s.t.Fatalf("never %s; the log says\n%s", what, s.log)
		}
	}
}

func (s *stage) call(method, address, path string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+address+path, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

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
