package probe_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/probe"
)

// ask probes handler once with the given change of the configuration.
func ask(t *testing.T, handler http.HandlerFunc, change func(*probe.HTTPConfig)) probe.Outcome {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	config := probe.HTTPConfig{URL: server.URL}
	if change != nil {
		change(&config)
	}
	p, err := probe.NewHTTP(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return p.Probe(ctx)
}

func body(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s) }
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func jsonPath(path string) func(*probe.HTTPConfig) {
	return func(c *probe.HTTPConfig) { c.JSONPath = path }
}

func expect(code int) func(*probe.HTTPConfig) {
	return func(c *probe.HTTPConfig) { c.ExpectedStatus = code }
}

// Probe correctness: default 200 to 399, trimmed, any JSON type.
func TestHTTP(t *testing.T) {
	t.Parallel()
	const document = `{"status":{"state":"idle","players":12,"ratio":0.25,"ready":true,"none":null,
		"big":9007199254740993,"list":[{"name":"a b"},{"name":"c"}],"empty":""}}`
	ok := func(m string) probe.Outcome { return probe.Outcome{State: probe.Succeeded, Message: m} }
	tests := map[string]struct {
		handler http.HandlerFunc
		change  func(*probe.HTTPConfig)
		want    probe.Outcome
	}{
		"the body is trimmed":           {body("  idle\r\n"), nil, ok("idle")},
		"empty body":                    {body(""), nil, ok("")},
		"200 by default":                {status(200), nil, ok("")},
		"399 by default":                {status(399), nil, ok("")},
		"400 is not well":               {status(400), nil, probe.Outcome{State: probe.Failed, Message: "status 400, want 200 to 399"}},
		"500 is a result":               {status(500), nil, probe.Outcome{State: probe.Failed, Message: "status 500, want 200 to 399"}},
		"the status asked for":          {status(418), expect(418), ok("")},
		"200 where 204 is asked for":    {status(200), expect(204), probe.Outcome{State: probe.Failed, Message: "status 200, want 204"}},
		"string":                        {body(document), jsonPath("{.status.state}"), ok("idle")},
		"number":                        {body(document), jsonPath("{.status.players}"), ok("12")},
		"fraction":                      {body(document), jsonPath("{.status.ratio}"), ok("0.25")},
		"integer beyond float":          {body(document), jsonPath("{.status.big}"), ok("9007199254740993")},
		"bool":                          {body(document), jsonPath("{.status.ready}"), ok("true")},
		"null":                          {body(document), jsonPath("{.status.none}"), ok("null")},
		"object":                        {body(document), jsonPath("{.status.list[0]}"), ok(`{"name":"a b"}`)},
		"list":                          {body(document), jsonPath("{.status.list}"), ok(`[{"name":"a b"},{"name":"c"}]`)},
		"whole document":                {body(`12`), jsonPath("{@}"), ok("12")},
		"empty string":                  {body(document), jsonPath("{.status.empty}"), ok("")},
		"dotted path":                   {body(document), jsonPath("status.state"), ok("idle")},
		"dotted path with an index":     {body(document), jsonPath("status.list.1.name"), ok("c")},
		"dollar path":                   {body(document), jsonPath("$.status.state"), ok("idle")},
		"several":                       {body(document), jsonPath("{.status.list[*].name}"), ok("a b c")},
		"filter by number":              {body(document), jsonPath("{.status.list[?(@.name=='c')].name}"), ok("c")},
		"filter that nothing passes":    {body(document), jsonPath("{.status.list[?(@.name=='z')].name}"), probe.Outcome{State: probe.Unknown, Message: "JSON path {.status.list[?(@.name=='z')].name}: nothing there"}},
		"path leads nowhere is unknown": {body(document), jsonPath("{.status.x}"), probe.Outcome{State: probe.Unknown, Message: "JSON path {.status.x}: x is not found"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, ask(t, tt.handler, tt.change)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for name, text := range map[string]string{"no JSON": "<html>", "empty": "", "cut off": `{"a":`} {
		if got := ask(t, body(text), jsonPath("{.a}")); got.State != probe.Unknown {
			t.Errorf("%s: %+v, want Unknown", name, got)
		}
	}
}

// kruise counts runes and cuts bytes; three bytes of one character stay together here.
func TestMessageIsCutBetweenRunes(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"three bytes": strings.Repeat("界", 1000), "four bytes": "x" + strings.Repeat("🚀", 1000), "not UTF-8": strings.Repeat("a\xff", 3000),
	} {
		got := ask(t, body(text), nil).Message
		if len(got) > probe.MaxMessage || len(got) < probe.MaxMessage-3 || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes, valid %v", name, len(got), utf8.ValidString(got))
		}
	}
}

func TestHTTPSendsWhatIsConfigured(t *testing.T) {
	t.Parallel()
	var got string
	handler := func(_ http.ResponseWriter, r *http.Request) {
		got = strings.Join([]string{r.Method, r.Host, r.URL.RequestURI(), r.Header.Get("X-Token"), r.Header.Get("User-Agent"), r.Header.Get("Accept")}, " ")
	}
	ask(t, handler, func(c *probe.HTTPConfig) {
		c.URL += "/state?full=1"
		c.Method = "POST"
		c.Header = http.Header{"x-token": {"t"}, "Host": {"game.example"}}
	})
	if want := "POST game.example /state?full=1 t refit-probe */*"; got != want {
		t.Errorf("server saw %q, want %q", got, want)
	}
	ask(t, handler, func(c *probe.HTTPConfig) {
		c.URL += "/"
		c.Header = http.Header{"user-agent": {"mine"}, "accept": {"text/plain"}, "Host": {"h"}}
	})
	if want := "GET h /  mine text/plain"; got != want {
		t.Errorf("server saw %q, want %q", got, want)
	}
}

func TestHTTPS(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(body("idle"))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the refused handshake
	server.StartTLS()
	defer server.Close()
	for skip, want := range map[bool]probe.State{true: probe.Succeeded, false: probe.Failed} {
		p, err := probe.NewHTTP(probe.HTTPConfig{URL: server.URL, SkipTLSVerify: skip})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Probe(t.Context()); got.State != want {
			t.Errorf("skip verification %v: %+v", skip, got)
		}
	}
}

// A new client for each probe, or one that keeps its connections, piles them up on the server.
func TestHTTPLeavesNoConnection(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	alive := map[net.Conn]http.ConnState{}
	server := httptest.NewUnstartedServer(body("idle"))
	server.Config.ConnState = func(c net.Conn, s http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		if alive[c] = s; s == http.StateClosed {
			delete(alive, c)
		}
	}
	server.Start()
	p, err := probe.NewHTTP(probe.HTTPConfig{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if got := p.Probe(t.Context()); got.State != probe.Succeeded {
			t.Fatalf("%+v", got)
		}
	}
	mu.Lock()
	for _, s := range alive {
		if s == http.StateIdle {
			t.Error("a connection is kept")
		}
	}
	mu.Unlock()
	server.Close() // waits for those that are not idle
}

// The URL may hold a password, and messages are published.
func TestHTTPErrorsDoNotShowTheURL(t *testing.T) {
	t.Parallel()
	p, err := probe.NewHTTP(probe.HTTPConfig{URL: "http://user:secret@127.0.0.1:1/token"})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Probe(t.Context()); got.State != probe.Failed || strings.Contains(got.Message, "token") || strings.Contains(got.Message, "secret") {
		t.Errorf("%+v", got)
	}
}

func TestNewHTTPReportsAllFaults(t *testing.T) {
	t.Parallel()
	_, err := probe.NewHTTP(probe.HTTPConfig{
		URL: "file:///etc/passwd", Method: "GE T", ExpectedStatus: 42, JSONPath: "{.a", Header: http.Header{"A B": {"x"}, "C": {"y\n"}},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"want http or https", `"GE T"`, "42", "JSON path", `"A B"`, `"C"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %s", err, want)
		}
	}
	if err := probe.CheckJSONPath(""); err == nil {
		t.Error("empty JSON path: no error")
	}
	for address, allowed := range map[string]bool{
		"http://h": true, "https://h:1/": true, "ftp://h": false, "h": false, "http://": false, "http://:80": false, "https:///x": false, "http://%zz": false,
	} {
		if _, err := probe.NewHTTP(probe.HTTPConfig{URL: address}); (err == nil) != allowed {
			t.Errorf("URL %s: %v", address, err)
		}
	}
	for status, allowed := range map[int]bool{0: true, 99: false, 100: true, 999: true, 1000: false} {
		if _, err := probe.NewHTTP(probe.HTTPConfig{URL: "http://h", ExpectedStatus: status}); (err == nil) != allowed {
			t.Errorf("expected status %d: %v", status, err)
		}
	}
}
