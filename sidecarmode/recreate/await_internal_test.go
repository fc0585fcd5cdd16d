package recreate

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/refit-project/refit/identity"
	"github.com/refit-project/refit/kube/ownpod"
	"github.com/refit-project/refit/sidecarmode/plugin"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), part)
}

func newPlugin(t *testing.T, api http.Handler, pod identity.Pod, observed func() *corev1.Pod) (*Plugin, *lines) {
	t.Helper()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	client, err := ownpod.NewClient(&rest.Config{Host: server.URL, QPS: 1000, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	log := &lines{}
	return &Plugin{host: plugin.Host{Logger: slog.New(slog.NewTextHandler(log, nil)), Pod: pod, API: client, Observed: observed}}, log
}

// While the API server is away a log line and the status say that no request is carried out, once for each reason, and
// the plugin goes on by itself.
func TestAnAPIServerThatIsAwayIsLogged(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	p, log := newPlugin(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"resources":[{"name":"containerrecreaterequests"}]}`)
	}), identity.Pod{Namespace: "n", Name: "p", UID: "u"}, func() *corev1.Pod { return nil })
	found := make(chan *ownpod.Requests)
	go func() { found <- p.await(t.Context()) }()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for log.count("no ContainerRecreateRequest can be carried out") == 0 || p.Status().Healthy {
		select {
		case <-ticker.C:
		case <-t.Context().Done():
			t.Fatal("nothing is logged")
		}
	}
	up.Store(true)
	if requests := <-found; requests == nil {
		t.Error("no requests")
	}
	if n := log.count("can be carried out"); n != 1 || !p.Status().Healthy {
		t.Errorf("logged %d times, status %+v", n, p.Status())
	}
}

// Requests are selected by the UID of the pod: from the downward API, or else from the pod once it can be read.
func TestUIDOfThePod(t *testing.T) {
	t.Parallel()
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"resources":[{"name":"containerrecreaterequests"}]}`)
	})
	for name, tt := range map[string]struct {
		uid  string
		pod  *corev1.Pod
		want string // part of the error
	}{
		"downward API":           {uid: "u"},
		"read from the pod":      {pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}},
		"neither":                {want: "metadata.uid"},
		"the pod cannot be read": {uid: "u", pod: nil},
	} {
		p, _ := newPlugin(t, served, identity.Pod{Namespace: "n", Name: "p", UID: tt.uid}, func() *corev1.Pod { return tt.pod })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := p.find(ctx)
		cancel()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
