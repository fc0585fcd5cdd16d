package inpod

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/test/kit/logbuffer"
)

func newPlugin(t *testing.T, api http.Handler, pod identity.Pod, observed func() *corev1.Pod) (*Plugin, *logbuffer.Buffer) {
	t.Helper()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	client, err := ownpod.NewClient(&rest.Config{Host: server.URL, QPS: 1000, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	log := &logbuffer.Buffer{}
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
	for strings.Count(log.String(), "ContainerRecreateRequests are not carried out") == 0 || p.Status().Healthy {
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
	if n := strings.Count(log.String(), "are not carried out"); n != 1 || !p.Status().Healthy {
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

// A failed step is tried again soon, with growing pauses, which are short again after a success.
func TestBackoffIsResetAfterASuccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := &refusing{world: w, refuse: 4}
		p, runner := w.plugin(r)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.loop(ctx, runner, w.news) }()
		w.news <- map[string]*v1beta1.ContainerRecreateRequest{"r": w.request.DeepCopy()}
		time.Sleep(time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		var pauses []time.Duration
		for i := 1; i < len(r.failed); i++ {
			pauses = append(pauses, r.failed[i].Sub(r.failed[i-1]))
		}
		// Four failures, a success, and one failure more, after which the pause is the first one again.
		want := []time.Duration{firstRetry, 2 * firstRetry, 4 * firstRetry}
		if len(pauses) < 3 || !slices.Equal(pauses[:3], want) {
			t.Errorf("pauses %v, want %v", pauses, want)
		}
		if len(r.failed) != 5 || r.next.Sub(r.failed[4]) != firstRetry {
			t.Errorf("after the later failure at %v the next attempt was at %v, want %s later", r.failed, r.next, firstRetry)
		}
	})
}

// refusing refuses the first writes, and one more after the first that it took.
type refusing struct {
	*world
	refuse int
	taken  int
	failed []time.Time
	next   time.Time // of the attempt after the last failure
}

func (r *refusing) WriteStatus(_ context.Context, request *v1beta1.ContainerRecreateRequest, status v1beta1.ContainerRecreateRequestStatus) (*v1beta1.ContainerRecreateRequest, error) {
	if len(r.failed) < r.refuse || r.taken == 1 && len(r.failed) == r.refuse {
		r.failed = append(r.failed, time.Now())
		return nil, errors.New("conflict")
	}
	if len(r.failed) == r.refuse+1 && r.next.IsZero() {
		r.next = time.Now()
	}
	r.taken++
	r.mu.Lock()
	defer r.mu.Unlock()
	stored := request.DeepCopy()
	stored.Status = status
	stored.ResourceVersion = fmt.Sprint(10 + r.taken)
	r.request = stored
	return stored.DeepCopy(), nil
}
