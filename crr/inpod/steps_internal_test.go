package inpod

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/signal"
)

// The list of requests is what exists: what is missing in the next one has been deleted.
func TestRequestsThatAreNotListedAnyMoreAreForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld()
	p, r := w.plugin(w)
	one, other := w.request.DeepCopy(), w.request.DeepCopy()
	other.Name, other.UID = "other", "r-2"
	r.list(p.host.Pod, map[string]*crr.Request{"r": one, "other": other})
	if !r.HasRequests(p.host.Pod) {
		t.Error("no requests")
	}
	r.list(p.host.Pod, map[string]*crr.Request{"other": other})
	if r.Put(p.host.Pod, other) || !r.Put(p.host.Pod, one) {
		t.Error("want the request that is listed, and not the one that was")
	}
	r.list(p.host.Pod, nil)
	r.Remove(one)
	if r.HasRequests(p.host.Pod) {
		t.Error("a deleted request is kept")
	}
}

// Nothing is decided about a pod that could not be read yet.
func TestRequestsWaitForThePod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		p, r := w.plugin(w)
		var read atomic.Bool
		p.host.Observed = func() *corev1.Pod {
			if read.Load() {
				return w.observed()
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.loop(ctx, r, w.news) }()
		w.news <- map[string]*crr.Request{"r": w.request.DeepCopy()}
		time.Sleep(time.Minute)
		if w.writes > 0 {
			t.Errorf("%d writes before the pod is known", w.writes)
		}
		read.Store(true)
		w.changes <- struct{}{}
		time.Sleep(time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.check(t, "succeeded", crr.ReasonSucceeded, "SIGTERM 1")
	})
}

func TestRuntimeOfThePod(t *testing.T) {
	t.Parallel()
	pod := newWorld().pod
	pod.Status.ContainerStatuses[0].ContainerID = ""
	if got := runtimeOf(pod); got != "containerd" {
		t.Errorf("runtime %q", got)
	}
	if got := runtimeOf(&corev1.Pod{}); got != "" {
		t.Errorf("runtime %q of a pod that has not started", got)
	}
}

func TestNeedsAndInit(t *testing.T) {
	t.Parallel()
	p := New().(*Plugin)
	if err := p.Init(t.Context(), nil, plugin.Host{}); err == nil || !strings.Contains(err.Error(), "API server") {
		t.Errorf("without an API server: %v", err)
	}
	if err := p.Init(t.Context(), nil, plugin.Host{API: &ownpod.Client{}}); err == nil || !strings.Contains(err.Error(), "processes") {
		t.Errorf("without processes: %v", err)
	}
	if err := p.Init(t.Context(), nil, plugin.Host{API: &ownpod.Client{}, Processes: &signal.FS{}}); err != nil {
		t.Error(err)
	}
	var verbs []string
	for _, need := range p.Needs().Access {
		verbs = append(verbs, strings.TrimSuffix(need.Verb+" "+need.Of.Resource+"/"+need.Of.Subresource, "/"))
	}
	if got := strings.Join(verbs, ", "); got != "list containerrecreaterequests, watch containerrecreaterequests, patch containerrecreaterequests/status" {
		t.Errorf("needs %s", got)
	}
}
