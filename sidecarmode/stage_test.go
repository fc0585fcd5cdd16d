package sidecarmode_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
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
	"github.com/refit-project/refit/test/kit/loopback"
	"github.com/refit-project/refit/test/kit/poll"
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
	// down: every request fails. unwatched: the pod can be read, but not be followed.
	down, unwatched bool
}

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
	case a.down, a.unwatched && path == "/api/v1/namespaces/games/pods":
		http.Error(w, "down", http.StatusInternalServerError)
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

func newStage(t *testing.T) *stage {
	t.Helper()
	return &stage{t: t, dir: t.TempDir(), api: newAPIServer(), address: loopback.Address(t), health: loopback.Address(t), log: &strings.Builder{}}
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

func (s *stage) config(server *httptest.Server) sidecarmode.Config {
	return sidecarmode.Config{
		File: filepath.Join(s.dir, "config.yaml"), Namespace: "games", Pod: "gs-0", Container: "refit-sidecar",
		API: &rest.Config{Host: server.URL, QPS: 1000, Burst: 1000}, Grace: 5 * time.Second, Version: "v0", Logger: slog.New(slog.NewTextHandler(s, nil)),
	}
}

// run runs a sidecar that ends by itself.
func (s *stage) run() error {
	server := httptest.NewServer(s.api)
	defer server.Close()
	defer server.CloseClientConnections()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	return sidecarmode.Run(ctx, s.config(server))
}

func (s *stage) start() *stage {
	s.t.Helper()
	server := httptest.NewServer(s.api)
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	done := make(chan error, 1)
	go func() { done <- sidecarmode.Run(ctx, s.config(server)) }()
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
	poll.Until(s.t, what, is, func() string {
		s.loggedLocked.Lock()
		defer s.loggedLocked.Unlock()
		return "the log says\n" + s.log.String()
	})
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
