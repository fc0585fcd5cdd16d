package transport_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refit-project/refit/probe/transport"
)

func get(ctx context.Context, t *testing.T, url string, header http.Header) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	return (&transport.Transport{Dial: (&net.Dialer{}).DialContext, MaxHeader: 1 << 10}).RoundTrip(request)
}

func TestPasswordOfTheURLIsSentUnlessAHeaderSaysOtherwise(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Got", r.Header.Get("Authorization"))
	}))
	t.Cleanup(server.Close)
	with := strings.Replace(server.URL, "http://", "http://user:secret@", 1)
	for name, tt := range map[string]struct {
		url    string
		header http.Header
		want   string
	}{
		"none":     {server.URL, nil, ""},
		"password": {with, nil, "Basic dXNlcjpzZWNyZXQ="},
		"header":   {with, http.Header{"Authorization": {"Bearer token"}}, "Bearer token"},
	} {
		response, err := get(t.Context(), t, tt.url, tt.header)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := response.Header.Get("X-Got"); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}

// listen answers one connection with a text, once a request has been read, and returns what it reads afterwards.
func listen(t *testing.T, answer string) (url string, end <-chan error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	ended := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			ended <- err
			return
		}
		defer func() { _ = conn.Close() }()
		reader := bufio.NewReader(conn)
		if _, err := http.ReadRequest(reader); err != nil {
			ended <- err
			return
		}
		_, _ = fmt.Fprint(conn, answer)
		_, err = reader.ReadByte()
		ended <- err
	}()
	return "http://" + listener.Addr().String(), ended
}

func TestAnswersBeforeTheOneThatCounts(t *testing.T) {
	t.Parallel()
	const ok, early = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n"
	for name, tt := range map[string]struct {
		answer string
		want   int // status; 0: an error
	}{
		"none":              {ok, 200},
		"continue":          {early + ok, 200},
		"early hints":       {"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok, 200},
		"five":              {strings.Repeat(early, 5) + ok, 200},
		"six":               {strings.Repeat(early, 6) + ok, 0},
		"another protocol":  {"HTTP/1.1 101 Switching Protocols\r\n\r\n", 101},
		"too long a header": {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<10) + "\r\n\r\n", 0},
	} {
		url, _ := listen(t, tt.answer)
		response, err := get(t.Context(), t, url, nil)
		if (err == nil) != (tt.want != 0) || err == nil && response.StatusCode != tt.want {
			t.Errorf("%s: %+v, %v; want status %d", name, response, err, tt.want)
		}
		if err == nil {
			_ = response.Body.Close()
		}
	}
}

// Thousands of probes would leave as many ports in TIME_WAIT.
func TestConnectionIsReset(t *testing.T) {
	t.Parallel()
	url, end := listen(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	response, err := get(t.Context(), t, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-end:
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the server reads %v, want a reset", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the connection stays open")
	}
}

func TestErrorOfARequestThatIsNotAnsweredIsThatOfItsContext(t *testing.T) {
	t.Parallel()
	url, _ := listen(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := get(ctx, t, url, nil); !errors.Is(err, context.DeadlineExceeded) { //nolint:bodyclose // there is none
		t.Errorf("%v", err)
	}
}

func TestPortOfTheScheme(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"http://h/": "h:80", "https://h/": "h:443", "http://h:8080/": "h:8080", "http://[::1]/": "[::1]:80",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		dialled, refused := "", errors.New("refused")
		sender := transport.Transport{Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			dialled = address
			return nil, refused
		}}
		_, err = sender.RoundTrip(request) //nolint:bodyclose // there is none
		if dialled != want || !errors.Is(err, refused) {
			t.Errorf("%s: dialled %s, %v; want %s", url, dialled, err, want)
		}
	}
}

// The limit is on the header; who reads the body has another.
func TestBodyMayBeLongerThanTheHeader(t *testing.T) {
	t.Parallel()
	url, _ := listen(t, "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"+strings.Repeat("x", 5000))
	response, err := get(t.Context(), t, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(response.Body); err != nil || len(body) != 5000 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	if _, err := response.Body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("read after the end: %v", err)
	}
}

// next counts requests.
type next struct{ asked int }

func (n *next) RoundTrip(*http.Request) (*http.Response, error) {
	n.asked++
	return &http.Response{StatusCode: http.StatusTeapot}, nil
}

func TestContinuedAsksFromTheSecondRequestOn(t *testing.T) {
	t.Parallel()
	rest := &next{}
	c := &transport.Continued{First: &http.Response{StatusCode: http.StatusFound}, Next: rest}
	for i, want := range []int{http.StatusFound, http.StatusTeapot, http.StatusTeapot} {
		if got, err := c.RoundTrip(nil); err != nil || got.StatusCode != want || rest.asked != i { //nolint:bodyclose // there is none
			t.Errorf("request %d: %+v, %v; %d asked", i, got, err, rest.asked)
		}
	}
}
