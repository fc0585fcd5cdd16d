package inpod_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/result/output"
)

// results keeps the latest entry of each source.
type results struct {
	mu      sync.Mutex
	entries map[string]result.Entry
}

func (r *results) Put(source string, _ []output.Output, entry result.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries[source] = entry
}

func (r *results) Drop(string) {}

func (r *results) Flush(context.Context, string) error { return nil }

func (r *results) value(source string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entries[source].Value
}

// apiServer has ConfigMaps and one pod.
type apiServer struct {
	mu         sync.Mutex
	pod        *corev1.Pod
	deployment string                       // its UID
	configMaps map[string]map[string]string // data by name
	down       bool
	refused    int // requests while it was down
	forbidden  bool
	conflicts  int           // answers to creations before one succeeds
	watches    chan struct{} // closed: watches end, and are followed by a list
	watching   int
	lists      int // of ConfigMaps
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	refuse := func(code int, reason string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
	}
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	document := func() map[string]any {
		return map[string]any{"metadata": map[string]any{"name": name, "resourceVersion": "1"}, "data": a.configMaps[name]}
	}
	switch {
	case a.down:
		a.refused++
		refuse(500, "InternalError")
	case a.forbidden:
		refuse(403, "Forbidden")
	case strings.Contains(r.URL.Path, "/replicasets/"):
		fmt.Fprintf(w, `{"metadata":{"ownerReferences":[{"kind":"Deployment","name":"web","uid":%q,"controller":true}]}}`, a.deployment)
	case strings.Contains(r.URL.Path, "/pods/"):
		_ = json.NewEncoder(w).Encode(a.pod)
	case r.URL.Query().Get("watch") == "true":
		ended := a.watches
		a.watching++
		a.mu.Unlock()
		select {
		case <-ended:
			fmt.Fprint(w, `{"type":"ERROR","object":{"kind":"Status","code":410}}`)
		case <-r.Context().Done():
		}
		a.mu.Lock()
		a.watching--
	case strings.HasSuffix(r.URL.Path, "/configmaps") && r.Method == http.MethodGet:
		a.lists++
		name = strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
		_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"resourceVersion": "1"}, "items": []any{document()}})
	case r.Method == http.MethodPost:
		var c corev1.ConfigMap
		_ = json.NewDecoder(r.Body).Decode(&c)
		if a.conflicts > 0 {
			a.conflicts--
			a.configMaps[c.Name] = map[string]string{"another": "pod"}
			refuse(409, "AlreadyExists")
			return
		}
		a.configMaps[c.Name] = c.Data
		_ = json.NewEncoder(w).Encode(c)
	case a.configMaps[name] == nil:
		refuse(404, "NotFound")
	case r.Method == http.MethodPatch:
		patch, _ := io.ReadAll(r.Body)
		before, _ := json.Marshal(map[string]any{"data": a.configMaps[name]})
		after, err := jsonpatch.MergePatch(before, patch)
		if err != nil {
			refuse(422, "Invalid")
			return
		}
		var c corev1.ConfigMap
		_ = json.Unmarshal(after, &c)
		a.configMaps[name] = c.Data
		_ = json.NewEncoder(w).Encode(c)
	default:
		_ = json.NewEncoder(w).Encode(document())
	}
}

func (a *apiServer) set(change func(*apiServer)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

// relist changes something, and returns when the sidecar has listed again and watches.
func (s *stage) relist(change func(*apiServer)) {
	s.t.Helper()
	s.until("watching", func() bool { s.api.mu.Lock(); defer s.api.mu.Unlock(); return s.api.watching > 0 })
	before := 0
	s.api.set(func(a *apiServer) {
		change(a)
		before = a.lists
		close(a.watches)
		a.watches = make(chan struct{})
	})
	s.until("listed again", func() bool {
		s.api.mu.Lock()
		defer s.api.mu.Unlock()
		return s.api.lists > before && s.api.watching > 0
	})
}

func (a *apiServer) data(name, key string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.configMaps[name][key]
}

// origin serves files, and counts.
type origin struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string]string
	asked int
	block chan struct{} // answers wait for its end
}

func newOrigin(t *testing.T) *origin {
	t.Helper()
	o := &origin{files: map[string]string{}}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.asked++
		content, ok := o.files[r.URL.Path]
		block := o.block
		o.mu.Unlock()
		if block != nil {
			select {
			case <-block:
			case <-r.Context().Done():
				return
			}
		}
		if !ok {
			http.Error(w, "<html>no such page</html>", http.StatusNotFound)
			return
		}
		fmt.Fprint(w, content)
	}))
	t.Cleanup(o.Close)
	return o
}

func (o *origin) put(path, content string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.files[path] = content
	return o.URL + path
}
