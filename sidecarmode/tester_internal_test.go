package sidecarmode

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/plugin"
)

// role answers what a role allows, and counts the questions.
type role struct {
	mu      sync.Mutex
	allowed bool
	asked   int
}

func (r *role) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	return &http.Response{
		StatusCode: http.StatusCreated, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(fmt.Sprintf(`{"status":{"allowed":%t}}`, r.allowed))),
	}, nil
}

func (r *role) questions() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// What is missing may be granted at any moment, and nothing tells of that; what is there is seldom taken away.
func TestRoleIsAskedAboutAgain(t *testing.T) {
	t.Parallel()
	const needs = 3 // of the program itself
	for name, tt := range map[string]struct {
		allowed bool
		do      func(*tester)
		after   time.Duration
		rounds  int
	}{
		"at the start":                        {true, nil, time.Second, 1},
		"not again for a change of the pod":   {true, func(t *tester) { t.sidecar.feed.set(&corev1.Pod{}) }, time.Minute, 1},
		"after ten minutes, with a change":    {true, func(t *tester) { time.Sleep(10 * time.Minute); t.sidecar.feed.set(&corev1.Pod{}) }, 11 * time.Minute, 2},
		"for a configuration that is loaded":  {true, func(t *tester) { t.retest() }, time.Minute, 2},
		"every half minute while one is lost": {false, nil, 5*time.Minute - time.Second, 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := &role{allowed: tt.allowed}
			client, err := ownpod.NewClient(&rest.Config{Host: "http://api", Transport: asked, QPS: 1000, Burst: 1000})
			if err != nil {
				t.Fatal(err)
			}
			manager, err := plugin.NewManager(plugin.Config{})
			if err != nil {
				t.Fatal(err)
			}
			s := &sidecar{
				logger: slog.New(slog.DiscardHandler), pod: identity.Pod{Namespace: "games", Name: "gs-0", UID: "u"},
				feed: newPodFeed(), api: client, manager: manager, state: newState("v1", newMeter()), condition: off,
			}
			ctx, cancel := context.WithTimeout(t.Context(), tt.after)
			defer cancel()
			tester := newTester(s)
			if tt.do != nil {
				go func() {
					time.Sleep(time.Second)
					tt.do(tester)
				}()
			}
			if err := tester.run(ctx); err != nil {
				t.Error(err)
			}
			if got := asked.questions(); got != needs*tt.rounds {
				t.Errorf("%s: %d questions, want %d", name, got, needs*tt.rounds)
			}
		})
	}
}
