package ownpod_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kube/ownpod"
)

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}

// script is an API server that answers each list or watch with the next line.
type script struct {
	t     *testing.T
	mu    sync.Mutex
	lines []string // "list <json>", "watch <rv wanted>: <events>", "error <code> <reason>"
	ended chan struct{}
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if len(s.lines) == 0 {
		select {
		case <-s.ended:
		default:
			close(s.ended)
		}
		s.mu.Unlock()
		<-r.Context().Done()
		return
	}
	line := s.lines[0]
	s.lines = s.lines[1:]
	s.mu.Unlock()
	kind, rest, _ := strings.Cut(line, " ")
	q := r.URL.Query()
	if watching := q.Get("watch") == "true"; watching != (kind == "watch") && kind != "error" {
		s.t.Errorf("%s asked for, next is %s", r.URL, line)
	}
	switch kind {
	case "error":
		code := 0
		reason := ""
		if _, err := fmt.Sscan(rest, &code, &reason); err != nil {
			s.t.Error(err)
		}
		refuse(w, code, reason)
	case "list":
		fmt.Fprint(w, rest)
	case "watch":
		version, events, _ := strings.Cut(rest, ": ")
		if q.Get("resourceVersion") != version {
			s.t.Errorf("watch from %q, want %q", q.Get("resourceVersion"), version)
		}
		fmt.Fprint(w, events)
	}
}

func configMap(version, value string) string {
	return fmt.Sprintf(`{"metadata":{"name":"c","resourceVersion":"%s"},"data":{"k":"%s"}}`, version, value)
}

func TestFollow(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lines  []string
		want   []string // what changed saw, value of k or "none"
		faults int
	}{
		"there at first, then changed": {
			lines: []string{
				`list {"metadata":{"resourceVersion":"5"},"items":[` + configMap("3", "a") + `]}`,
				`watch 5: {"type":"MODIFIED","object":` + configMap("7", "b") + `}`,
				`watch 7: {"type":"DELETED","object":` + configMap("8", "b") + `}{"type":"ADDED","object":` + configMap("9", "c") + `}`,
			},
			want: []string{"a", "b", "none", "c"},
		},
		"not there at first": {
			lines: []string{`list {"metadata":{"resourceVersion":"5"},"items":[]}`, `watch 5: {"type":"ADDED","object":` + configMap("6", "a") + `}`},
			want:  []string{"none", "a"},
		},
		"a bookmark is no change": {
			lines: []string{
				`list {"metadata":{"resourceVersion":"5"},"items":[]}`,
				`watch 5: {"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"90"}}}`,
				`watch 90: {"type":"ADDED","object":` + configMap("91", "a") + `}`,
			},
			want: []string{"none", "a"},
		},
		"an expired watch lists again": {
			lines: []string{
				`list {"metadata":{"resourceVersion":"5"},"items":[` + configMap("3", "a") + `]}`,
				`watch 5: {"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}}`,
				`list {"metadata":{"resourceVersion":"50"},"items":[` + configMap("40", "b") + `]}`,
			},
			want: []string{"a", "b"}, faults: 1,
		},
		"an expired watch that is refused lists again": {
			lines: []string{
				`list {"metadata":{"resourceVersion":"5"},"items":[` + configMap("3", "a") + `]}`,
				`error 410 Expired`,
				`list {"metadata":{"resourceVersion":"50"},"items":[` + configMap("40", "b") + `]}`,
			},
			want: []string{"a", "b"}, faults: 1,
		},
		"refused at first": {
			lines: []string{`error 403 Forbidden`, `list {"metadata":{"resourceVersion":"5"},"items":[` + configMap("3", "a") + `]}`},
			want:  []string{"a"}, faults: 1,
		},
		"garbage": {
			lines: []string{
				`list {"metadata":{"resourceVersion":"5"},"items":[]}`, `watch 5: {"type":"ADDED","object":17}`,
				`list {"metadata":{"resourceVersion":"6"},"items":[` + configMap("6", "a") + `]}`,
			},
			want: []string{"none", "a"}, faults: 1,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{t: t, lines: tt.lines, ended: make(chan struct{})}
			c := serve(t, s)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var got []string
			var faults int
			done := make(chan struct{})
			go func() {
				defer close(done)
				ref := ownpod.Reference{Version: "v1", Resource: "configmaps", Namespace: "games", Name: "c"}
				ownpod.Follow(ctx, c, ownpod.Selection{Of: ref}, func(items map[string]*corev1.ConfigMap) {
					if c := items["c"]; c != nil {
						got = append(got, c.Data["k"])
					} else {
						got = append(got, "none")
					}
				}, func(error) { faults++ })
			}()
			select {
			case <-s.ended:
			case <-ctx.Done():
				t.Error("the script was not run to its end")
			}
			cancel()
			<-done
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if faults != tt.faults {
				t.Errorf("%d failures reported, want %d", faults, tt.faults)
			}
		})
	}
}

func TestFollowSelectsOneObject(t *testing.T) {
	t.Parallel()
	queries := make(chan string, 10)
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case queries <- r.URL.Path + " " + r.URL.Query().Get("fieldSelector") + " " + r.URL.Query().Get("labelSelector"):
		default:
		}
		if strings.HasSuffix(r.URL.Path, "v1beta1") {
			fmt.Fprint(w, `{"resources":[{"name":"containerrecreaterequests"}]}`)
			return
		}
		refuse(w, 403, "Forbidden")
	}))
	ctx, cancel := contextWithCancel(t)
	defer cancel()
	failed := ownpod.Log(slog.New(slog.DiscardHandler), ownpod.Selection{})
	ownpod.Follow(ctx, c, ownpod.Selection{Of: ownpod.PodReference(pod)}, func(map[string]*corev1.Pod) {}, func(err error) {
		failed(err)
		cancel()
	})
	if got, want := <-queries, "/api/v1/namespaces/games/pods metadata.name=gs-0 "; got != want {
		t.Errorf("asked for %q, want %q", got, want)
	}
	requests, err := c.Requests(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	<-queries
	again, cancelAgain := contextWithCancel(t)
	requests.Follow(again, func(map[string]*v1beta1.ContainerRecreateRequest) {}, func(error) { cancelAgain() })
	want := "/apis/apps.kruise.io/v1beta1/namespaces/games/containerrecreaterequests  crr.apps.kruise.io/pod-uid=u-1,crr.apps.kruise.io/active=true"
	if got := <-queries; got != want {
		t.Errorf("asked for %q, want %q", got, want)
	}
}
