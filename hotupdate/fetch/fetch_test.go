package fetch_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hotupdate/fetch"
	"github.com/refit-project/refit/hotupdate/payload"
)

// server answers the n-th request, counted from 1, and records the requests.
type server struct {
	url    string
	answer func(n int, w http.ResponseWriter, r *http.Request)

	mu    sync.Mutex
	asked []*http.Request
	at    []time.Time
}

func serve(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *server {
	t.Helper()
	s := &server{answer: answer}
	started := httptest.NewServer(s)
	t.Cleanup(started.Close)
	s.url = started.URL
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked, s.at = append(s.asked, r), append(s.at, time.Now())
	n := len(s.asked)
	s.mu.Unlock()
	s.answer(n, w, r)
}

func (s *server) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// get fetches from the test's own servers, with these changes of the defaults.
func get(t *testing.T, url, etag string, change func(*fetch.Config)) (body string, answer fetch.Answer, err error) {
	t.Helper()
	config := fetch.Config{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	if change != nil {
		change(&config)
	}
	answer, err = fetch.New(config.WithDefaults()).Get(t.Context(), url, etag, func(from io.Reader) error {
		b, err := io.ReadAll(from)
		body = string(b)
		return err
	})
	return body, answer, err
}

func TestOnlyWhatMayPassIsAskedAgain(t *testing.T) {
	t.Parallel()
	status := func(codes ...int) func(int, http.ResponseWriter, *http.Request) {
		return func(n int, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(codes[min(n, len(codes))-1])
			fmt.Fprint(w, "body")
		}
	}
	for name, tt := range map[string]struct {
		answer func(int, http.ResponseWriter, *http.Request)
		etag   string
		change func(*fetch.Config)
		asked  int
		fails  string
		got    fetch.Answer
	}{
		"200":                           {answer: status(200), asked: 1},
		"500 once":                      {answer: status(500, 200), asked: 2},
		"408 once":                      {answer: status(408, 200), asked: 2},
		"429 once":                      {answer: status(429, 200), asked: 2},
		"503 for ever":                  {answer: status(503), asked: 3, fails: "status 503"},
		"503 for ever, one attempt":     {answer: status(503), asked: 1, fails: "status 503", change: func(c *fetch.Config) { c.Attempts = 1 }},
		"499":                           {answer: status(499), asked: 1, fails: "status 499"},
		"another success than 200":      {answer: status(201), asked: 1, fails: "status 201, want 200"},
		"304, asked with an ETag":       {answer: status(304), etag: `"1"`, asked: 1, got: fetch.Answer{ETag: `"1"`, Unchanged: true}},
		"304 although no ETag was sent": {answer: status(304), asked: 1, fails: "status 304"},
		"changed since that ETag":       {answer: status(200), etag: `"1"`, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tt.answer)
			body, got, err := get(t, s.url, tt.etag, tt.change)
			if asked := len(s.requests()); asked != tt.asked {
				t.Errorf("%d requests, want %d", asked, tt.asked)
			}
			if tt.fails != "" {
				if !errors.Is(err, fetch.ErrFetch) || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("%v: want %q", err, tt.fails)
				}
				return
			}
			if err != nil || got != tt.got || body != map[bool]string{false: "body"}[got.Unchanged] {
				t.Errorf("%q, %+v, %v; want %+v", body, got, err, tt.got)
			}
		})
	}
}

func TestAnnouncedSizeAndDigest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		header map[string]string
		want   error
	}{
		"as large as allowed": {map[string]string{"Content-Length": "4"}, nil},
		"larger":              {map[string]string{"Content-Length": "5"}, payload.ErrTooLarge},
		"digest too short":    {map[string]string{"Repr-Digest": "sha-256=:AAAA:"}, fetch.ErrFetch},
		"digest not base64":   {map[string]string{"Repr-Digest": "sha-256=:" + strings.Repeat("?", 44) + ":"}, fetch.ErrFetch},
	} {
		s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			for name, value := range tt.header {
				w.Header().Set(name, value)
			}
			fmt.Fprint(w, "body!"[:min(4+strings.Count(tt.header["Content-Length"], "5"), 5)])
		})
		if _, _, err := get(t, s.url, "", func(c *fetch.Config) { c.MaxBytes = 4 }); !errors.Is(err, tt.want) || len(s.requests()) != 1 {
			t.Errorf("%s: %v after %d requests", name, err, len(s.requests()))
		}
	}
}

// A server that has too much to do is given more time after each attempt.
func TestPausesBetweenAttemptsGrow(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	if _, _, err := get(t, s.url, "", nil); err == nil || len(s.at) != 3 {
		t.Fatalf("%v after %d requests", err, len(s.at))
	}
	if first, second := s.at[1].Sub(s.at[0]), s.at[2].Sub(s.at[1]); first < 200*time.Millisecond || second < 400*time.Millisecond {
		t.Errorf("pauses of %s and %s", first, second)
	}
}

// An error of the disk or of an archive is not solved by another download.
func TestAFaultOfTheReaderIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "body") })
	full := errors.New("no space left")
	config := fetch.Config{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	_, err := fetch.New(config.WithDefaults()).Get(t.Context(), s.url, "", func(io.Reader) error { return full })
	if !errors.Is(err, full) || len(s.requests()) != 1 {
		t.Errorf("%v after %d requests", err, len(s.requests()))
	}
}

func TestFiveRedirectsAreFollowed(t *testing.T) {
	t.Parallel()
	for redirects, refused := range map[int]bool{5: false, 6: true} {
		s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
			if n <= redirects {
				http.Redirect(w, r, fmt.Sprintf("/%d", n), http.StatusFound)
			}
		})
		if _, _, err := get(t, s.url, "", nil); errors.Is(err, fetch.ErrRefused) != refused || len(s.requests()) != 6 {
			t.Errorf("%d redirects: %v after %d requests", redirects, err, len(s.requests()))
		}
	}
}

// headers returns the headers of a request that matter.
func headers(r *http.Request) map[string]string {
	got := map[string]string{"host": r.Host}
	for _, name := range []string{"User-Agent", "X-Token", "Authorization", "If-None-Match", "Referer", "Accept-Encoding"} {
		if value := r.Header.Get(name); value != "" {
			got[name] = value
		}
	}
	return got
}

// Credentials are sent only to their host. The address of the first request may contain a signature, and is sent to nobody.
func TestHeadersAreForTheHostOfTheSource(t *testing.T) {
	t.Parallel()
	other := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 { // net/http would send the headers of the first request again
			http.Redirect(w, r, "/more", http.StatusFound)
		}
	})
	first := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, map[int]string{1: "/again", 2: other.url}[n], http.StatusFound)
	})
	_, _, err := get(t, first.url+"/?sig=secret", `"1"`, func(c *fetch.Config) {
		c.Header = func(context.Context) (http.Header, error) {
			return http.Header{"X-Token": {"t"}, "Authorization": {"a"}}, nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	of := func(s *server) string { return strings.TrimPrefix(s.url, "http://") }
	sent := map[string]string{"host": of(first), "User-Agent": "refit-sidecar", "X-Token": "t", "Authorization": "a", "If-None-Match": `"1"`}
	if diff := cmp.Diff([]map[string]string{sent, sent}, []map[string]string{headers(first.asked[0]), headers(first.asked[1])}); diff != "" {
		t.Errorf("to the host of the source (-want +got):\n%s", diff)
	}
	sent = map[string]string{"host": of(other), "User-Agent": "refit-sidecar"}
	if diff := cmp.Diff([]map[string]string{sent, sent}, []map[string]string{headers(other.asked[0]), headers(other.asked[1])}); diff != "" {
		t.Errorf("to another host (-want +got):\n%s", diff)
	}
}

func TestHostAndUserAgentMayBeGiven(t *testing.T) {
	t.Parallel()
	s := serve(t, func(int, http.ResponseWriter, *http.Request) {})
	_, _, err := get(t, s.url, "", func(c *fetch.Config) {
		c.Header = func(context.Context) (http.Header, error) {
			return http.Header{"Host": {"files.example.org"}, "User-Agent": {"game"}}, nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"host": "files.example.org", "User-Agent": "game"}, headers(s.asked[0])); diff != "" {
		t.Error(diff)
	}
}

// Without the configured credentials or CA certificates the download does not begin.
func TestUnreadableCredentialsAreAnError(t *testing.T) {
	t.Parallel()
	s := serve(t, func(int, http.ResponseWriter, *http.Request) {})
	missing := errors.New("no such file")
	for name, change := range map[string]func(*fetch.Config){
		"header":                func(c *fetch.Config) { c.Header = func(context.Context) (http.Header, error) { return nil, missing } },
		"certificate authority": func(c *fetch.Config) { c.RootCAs = func() (*x509.CertPool, error) { return nil, missing } },
	} {
		if _, _, err := get(t, s.url, "", change); !errors.Is(err, fetch.ErrFetch) || !errors.Is(err, missing) || len(s.requests()) != 0 {
			t.Errorf("%s: %v after %d requests", name, err, len(s.requests()))
		}
	}
}

// An invalid certificate is not retried.
func TestAnUnknownAuthorityIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	connections := 0
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		if state == http.StateNew {
			connections++
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	_, _, err := get(t, s.URL+"/?sig=secret", "", nil)
	mu.Lock()
	defer mu.Unlock()
	if !errors.Is(err, fetch.ErrFetch) || connections != 1 || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v after %d connections", err, connections)
	}
}
