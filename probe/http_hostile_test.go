package probe_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/probe"
)

// Neither a body without end nor a header without end is read to it.
func TestHTTPReadsBoundedAnswers(t *testing.T) {
	t.Parallel()
	endless := func(w http.ResponseWriter, r *http.Request) {
		chunk := []byte(strings.Repeat("x", 4096))
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	if got := ask(t, endless, nil); got.State != probe.Succeeded || len(got.Message) != probe.MaxMessage {
		t.Errorf("endless body: %s with %d bytes", got.State, len(got.Message))
	}
	if got := ask(t, endless, jsonPath("{.a}")); got.State != probe.Unknown || !strings.Contains(got.Message, "longer than") {
		t.Errorf("endless JSON: %+v", got)
	}
	wide := func(w http.ResponseWriter, _ *http.Request) {
		for i := range 1000 {
			w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("h", 1000))
		}
	}
	if got := ask(t, wide, nil); got.State != probe.Failed {
		t.Errorf("1 MB of header: %+v", got)
	}
}

// The timeout covers the whole answer, not the connection alone.
func TestHTTPTimeout(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	tests := map[string]http.HandlerFunc{
		"no header": func(_ http.ResponseWriter, r *http.Request) { wait(r, release) },
		"slow body": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "idle")
			_ = http.NewResponseController(w).Flush()
			wait(r, release)
		},
	}
	for name, handler := range tests {
		server := httptest.NewServer(handler)
		p, err := probe.NewHTTP(probe.HTTPConfig{URL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		got := p.Probe(ctx)
		cancel()
		if got.State != probe.Failed || !strings.Contains(got.Message, "no answer in time") {
			t.Errorf("%s: %+v", name, got)
		}
		defer server.Close()
	}
	close(release)
}

func wait(r *http.Request, release chan struct{}) {
	select {
	case <-r.Context().Done():
	case <-release:
	}
}

func TestHTTPRedirects(t *testing.T) {
	t.Parallel()
	foreign := httptest.NewServer(body("secret"))
	t.Cleanup(foreign.Close) // after the parallel cases
	foreignURL := strings.Replace(foreign.URL, "127.0.0.1", "127.0.0.2", 1)
	tests := map[string]struct {
		location string
		expected int
		want     probe.Outcome
	}{
		"same host is followed":        {"/home", 200, probe.Outcome{State: probe.Succeeded, Message: "at home"}},
		"another port of it is too":    {foreign.URL, 200, probe.Outcome{State: probe.Succeeded, Message: "secret"}},
		"foreign host is not":          {foreignURL, 200, probe.Outcome{State: probe.Failed, Message: "status 302, want 200"}},
		"foreign host, any 3xx allows": {foreignURL, 0, probe.Outcome{State: probe.Succeeded, Message: ""}},
		"a loop ends":                  {"/", 200, probe.Outcome{State: probe.Failed, Message: "status 302, want 200"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler := func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/home" {
					fmt.Fprint(w, "at home")
					return
				}
				w.Header().Set("Location", tt.location)
				w.WriteHeader(http.StatusFound)
			}
			if diff := cmp.Diff(tt.want, ask(t, handler, expect(tt.expected))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A server that hangs up is the same fault each time, whatever port we called from.
func TestReasonDoesNotNameOurPort(t *testing.T) {
	t.Parallel()
	hangUp := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
	got := ask(t, hangUp, nil)
	if got.State != probe.Failed || strings.Contains(got.Message, "->") || !strings.Contains(got.Message, "reset by peer") {
		t.Errorf("%+v", got)
	}
}
