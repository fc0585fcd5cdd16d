package probe_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refit-project/refit/probe"
)

// rawServer answers every connection with what answer writes after the request was read.
func rawServer(tb testing.TB, answer func(conn net.Conn)) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer func() { _ = conn.Close() }()
				if request, err := http.ReadRequest(bufio.NewReaderSize(conn, 512)); err == nil && request.Close {
					answer(conn)
				}
			})
		}
	})
	tb.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	return "http://" + listener.Addr().String()
}

func httpOutcome(tb testing.TB, config probe.HTTPConfig) probe.Outcome {
	tb.Helper()
	p, err := probe.NewHTTP(config)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), 5*time.Second)
	defer cancel()
	return p.Probe(ctx)
}

func TestHTTPResponses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		response string
		want     probe.Outcome
	}{
		"of known length":    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokmore", probe.Outcome{State: probe.Succeeded, Message: "ok"}},
		"until the end":      {"HTTP/1.0 200 OK\r\n\r\nall of it", probe.Outcome{State: probe.Succeeded, Message: "all of it"}},
		"in chunks":          {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", probe.Outcome{State: probe.Succeeded, Message: "ok"}},
		"after early hints":  {"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", probe.Outcome{State: probe.Succeeded}},
		"nothing but hints":  {strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 10), probe.Outcome{State: probe.Failed, Message: "too many responses of status 1xx"}},
		"no HTTP":            {"SSH-2.0-OpenSSH_9.9\r\n\r\n", probe.Outcome{State: probe.Failed, Message: `malformed HTTP response "SSH-2.0-OpenSSH_9.9"`}},
		"nothing":            {"", probe.Outcome{State: probe.Failed, Message: "unexpected EOF"}},
		"a header too large": {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 70<<10) + "\r\n\r\n", probe.Outcome{State: probe.Failed, Message: "the header of the response exceeds 65536 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := rawServer(t, func(conn net.Conn) { fmt.Fprint(conn, tc.response) })
			if got := httpOutcome(t, probe.HTTPConfig{URL: url}); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// A body that never ends is read as far as it counts, and then the connection is closed.
func TestAResponseWithoutAnEndIsClosed(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	url := rawServer(t, func(conn net.Conn) {
		_, err := fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n")
		for err == nil {
			_, err = conn.Write(make([]byte, 1<<10))
		}
		ended <- err
	})
	if got := httpOutcome(t, probe.HTTPConfig{URL: url}); got.State != probe.Succeeded {
		t.Errorf("got %+v", got)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the server could write all of it")
		}
	case <-time.After(10 * time.Second):
		t.Error("the connection was left open")
	}
}

func TestHTTPUserAndHostOfTheURL(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		fmt.Fprint(w, user, " ", password, " ", r.Host)
	}))
	defer server.Close()
	url := strings.Replace(server.URL, "https://", "https://me:secret@", 1)
	got := httpOutcome(t, probe.HTTPConfig{URL: url, Header: http.Header{"Host": {"game.example"}}, SkipTLSVerify: true})
	if got.Message != "me secret game.example" {
		t.Errorf("got %+v", got)
	}
	if got := httpOutcome(t, probe.HTTPConfig{URL: server.URL}); got.State != probe.Failed || !strings.Contains(got.Message, "certificate") {
		t.Errorf("with a certificate that is not trusted: %+v", got)
	}
}

// BenchmarkHTTP: one probe of a server on this machine, whose own work is in the figure too; beside it the same over
// http.Transport without kept connections, which is what kubelet's probes use.
func BenchmarkHTTP(b *testing.B) {
	url := rawServer(b, func(conn net.Conn) { fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") })
	b.Run("probe", func(b *testing.B) {
		p, err := probe.NewHTTP(probe.HTTPConfig{URL: url})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if got := p.Probe(b.Context()); got.State != probe.Succeeded {
				b.Fatal(got)
			}
		}
	})
	b.Run("http.Transport", func(b *testing.B) {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		b.ReportAllocs()
		for b.Loop() {
			response, err := client.Get(url)
			if err != nil {
				b.Fatal(err)
			}
			_ = response.Body.Close()
		}
	})
}
