package inpod_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	hotupdateinpod "github.com/refit-project/refit/hotupdate/inpod"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/config"
	"github.com/refit-project/refit/signal"
	"github.com/refit-project/refit/test/kit/poll"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a pod with a sidecar in it.
type stage struct {
	t       *testing.T
	dir     string
	origin  *origin
	api     *apiServer
	results *results
	fs      *signal.FS
	fetch   string // instead of fetchLocal

	plugin plugin.Plugin
	mux    *http.ServeMux
	end    func()
	ended  chan error // the result of Start

	expire context.CancelFunc // ends the time for the restore and the triggers
	mu     sync.Mutex
	times  []time.Time // the deadlines for these
}

func deployed(name string) *corev1.Pod {
	controller := true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "games", Name: name, UID: "u-" + "1", Labels: map[string]string{"pod-template-hash": "abc"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-abc", UID: "rs", Controller: &controller}},
	}}
}

// withAccepted returns a sidecar that has accepted files as v1, v2 and so on, which are recorded. Each has a path and a content.
func withAccepted(t *testing.T, files ...string) *stage {
	t.Helper()
	s := newStage(t).run(none)
	for i := 0; i+1 < len(files); i += 2 {
		s.accept(fmt.Sprint("v", i/2+1), files[i], files[i+1])
	}
	s.remembered(fmt.Sprint("v", len(files)/2))
	return s
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return &stage{
		t: t, dir: t.TempDir(), origin: newOrigin(t), results: &results{entries: map[string]result.Entry{}},
		api: &apiServer{pod: deployed("web-abc-1"), deployment: "d1", watches: make(chan struct{}), configMaps: map[string]map[string]string{"sidecar-result": {}}},
	}
}

// newPod creates another pod of the workload: only objects in the API remain.
func (s *stage) newPod(name string) *stage {
	s.stop()
	n := newStage(s.t)
	n.origin, n.api = s.origin, s.api
	s.api.set(func(a *apiServer) { a.pod = deployed(name) })
	return n
}

const (
	base = `
fileDir: DIR
storageConfig: {inKube: {annotationKey: hot-update-result, labelKey: hot}}
detailAnnotationKey: hot-update-detail
`
	fetchLocal = "fetch: {allowNetworks: [127.0.0.0/8], attempts: 1, timeoutSeconds: 5}"
)

func (s *stage) read(body string) (any, error) {
	body = strings.NewReplacer("DIR", s.dir, "ORIGIN", s.origin.URL).Replace(body)
	text := "plugins:\n- name: hot_update\n  config:\n    " + strings.ReplaceAll(strings.TrimSpace(body), "\n", "\n    ")
	f, err := config.Parse("config.yaml", []byte(text), config.Types{"hot_update": hotupdateinpod.New().ConfigType}, config.Unresolved)
	if err != nil {
		return nil, err
	}
	return f.Plugins[0].Config, nil
}

// start starts the sidecar with more configuration and does not wait for it.
func (s *stage) start(more string) *stage {
	s.t.Helper()
	c, err := s.read(base + cmp.Or(s.fetch, fetchLocal) + "\n" + more)
	if err != nil {
		s.t.Fatal(err)
	}
	server := httptest.NewServer(s.api)
	client, err := ownpod.NewClient(&rest.Config{Host: server.URL, QPS: 1000, Burst: 1000})
	if err != nil {
		s.t.Fatal(err)
	}
	s.plugin = hotupdateinpod.NewWithin(s.deadlines())
	host := plugin.Host{
		Logger: slog.New(slog.NewTextHandler(s.t.Output(), nil)), Pod: identity.Pod{Namespace: "games", Name: s.api.pod.Name, UID: "u"},
		Observed: func() *corev1.Pod { return nil }, Results: s.results, API: client, Processes: s.fs, Metrics: prometheus.NewRegistry(),
	}
	if err := s.plugin.Init(s.t.Context(), c, host); err != nil {
		s.t.Fatal(err)
	}
	s.mux = http.NewServeMux()
	for pattern, handler := range s.plugin.(plugin.Server).Routes() {
		s.mux.Handle(pattern, handler)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	done := make(chan error, 1)
	s.ended = done
	go func() { done <- s.plugin.Start(ctx) }()
	s.end = sync.OnceFunc(func() {
		patience, stop := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer stop()
		if err := s.plugin.Stop(patience); err != nil {
			s.t.Error(err)
		}
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
		server.CloseClientConnections()
		server.Close()
	})
	s.t.Cleanup(s.end)
	return s
}

// deadlines returns a replacement for context.WithDeadline: its contexts end when the test calls expire.
func (s *stage) deadlines() func(context.Context, time.Time) (context.Context, context.CancelFunc) {
	expiry, expire := context.WithCancel(context.WithoutCancel(s.t.Context()))
	s.expire, s.times = expire, nil
	return func(ctx context.Context, by time.Time) (context.Context, context.CancelFunc) {
		s.mu.Lock()
		s.times = append(s.times, by)
		s.mu.Unlock()
		ctx, cancel := context.WithDeadline(ctx, by)
		stop := context.AfterFunc(expiry, cancel)
		return ctx, func() { stop(); cancel() }
	}
}

// runWithout starts the sidecar, waits until /status contains reason, why the restore has failed, and ends the time for it.
func (s *stage) runWithout(reason, more string) *stage {
	s.t.Helper()
	s.start(more)
	s.until("failed: "+reason, func() bool { return strings.Contains(s.plugin.Status().Message, reason) })
	s.expire()
	s.until("ready", s.ready)
	return s
}

// run starts the sidecar and waits until it is ready.
func (s *stage) run(more string) *stage {
	s.t.Helper()
	s.start(more)
	s.until("ready", s.ready)
	return s
}

func (s *stage) ready() bool { return s.plugin.(plugin.Readier).Ready() }

func (s *stage) stop() {
	if s.end != nil {
		s.end()
	}
}

// until polls for results of other goroutines.
func (s *stage) until(what string, is func() bool) {
	s.t.Helper()
	poll.Until(s.t, what, is, func() string { return fmt.Sprintf("status %+v", s.plugin.Status()) })
}

// do sends a request to the sidecar.
func (s *stage) do(r *http.Request) (int, string) {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

// post sends a form as in the KEP.
func (s *stage) post(version, address string, more ...string) (int, string) {
	s.t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	if version != "" {
		form.Set("version", version)
	}
	if address != "" {
		form.Set("url", address)
	}
	r := httptest.NewRequest(http.MethodPost, "/hot-update", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return s.do(r)
}

func (s *stage) postJSON(path, body string) (int, map[string]any) {
	s.t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader([]byte(strings.ReplaceAll(body, "ORIGIN", s.origin.URL))))
	r.Header.Set("Content-Type", "application/json")
	code, text := s.do(r)
	var answer map[string]any
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		s.t.Fatalf("%d %s: %v", code, text, err)
	}
	return code, answer
}

// content returns what the program reads.
func (s *stage) content(name string) string {
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return "none"
	}
	return string(b)
}

func (s *stage) check(name, want string) {
	s.t.Helper()
	if got := s.content(name); got != want {
		s.t.Errorf("%s holds %q, want %q", name, got, want)
	}
}

// mustPost is post for an update that has to succeed.
func (s *stage) mustPost(version, address string, more ...string) {
	s.t.Helper()
	if code, said := s.post(version, address, more...); code != http.StatusOK {
		s.t.Fatalf("%s: %d %s", version, code, said)
	}
}

// mustPostJSON is postJSON for an update that has to succeed.
func (s *stage) mustPostJSON(path, body string) {
	s.t.Helper()
	if code, answer := s.postJSON(path, body); code != http.StatusOK {
		s.t.Fatalf("%s %s: %d %v", path, body, code, answer)
	}
}

func (s *stage) accept(version, path, content string) {
	s.t.Helper()
	s.mustPost(version, s.origin.put(path, content))
}

// remembered waits until the workload's record names a version as current.
func (s *stage) remembered(version string) {
	s.t.Helper()
	s.until("remembered "+version, func() bool {
		var r struct {
			Current   string `json:"current"`
			Revisions []struct{ Version, Digest string }
		}
		_ = json.Unmarshal([]byte(s.api.data("sidecar-result", "Deployment.web")), &r)
		return len(r.Revisions) > 0 && r.Revisions[0].Version == version && r.Current == r.Revisions[0].Digest
	})
}
