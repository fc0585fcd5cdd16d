package httpserver_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/refit-project/refit/internal/httpserver"
)

func address(ctx context.Context, t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func start(ctx context.Context, t *testing.T, handler http.HandlerFunc) (string, *errgroup.Group) {
	t.Helper()
	at := address(ctx, t)
	group, ctx := errgroup.WithContext(ctx)
	err := httpserver.Start(ctx, group, httpserver.Config{Address: at, Handler: handler, ReadTimeout: 50 * time.Millisecond, MaxHeaderBytes: 1 << 10})
	if err != nil {
		t.Fatal(err)
	}
	return at, group
}

// send writes text to the server and returns the first line of the response, or the error.
func send(t *testing.T, address, text string) string {
	t.Helper()
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprint(connection, text); err != nil {
		return err.Error()
	}
	line, err := bufio.NewReader(connection).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(line)
}

func TestClientsHaveBounds(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	read := func(out http.ResponseWriter, in *http.Request) {
		if n, err := in.Body.Read(make([]byte, 1)); n == 0 {
			http.Error(out, fmt.Sprint(err), http.StatusRequestTimeout)
		}
	}
	at, group := start(ctx, t, read)
	const post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n"
	for name, test := range map[string]struct{ text, want string }{
		"answered":            {post + "\r\nx", "HTTP/1.1 200 OK"},
		"body is not sent":    {post + "\r\n", "HTTP/1.1 408 Request Timeout"},
		"header is too large": {post + "X: " + strings.Repeat("x", 8<<10) + "\r\n\r\nx", "HTTP/1.1 431 Request Header Fields Too Large"},
	} {
		if got := send(t, at, test.text); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	stop()
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

func TestServerEndsWithItsContext(t *testing.T) { //nolint:paralleltest // goroutines of other tests would count as leaks
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, stop := context.WithCancel(t.Context())
	entered, leave := make(chan struct{}), make(chan struct{})
	at, group := start(ctx, t, func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	})
	answered := make(chan string, 1)
	go func() { answered <- send(t, at, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") }()
	<-entered
	stop()
	close(leave)
	if err := group.Wait(); err != nil {
		t.Errorf("%v: ending is not an error", err)
	}
	if got := <-answered; got != "HTTP/1.1 200 OK" {
		t.Errorf("a request that was being answered: %q", got)
	}
	if _, err := new(net.Dialer).DialContext(t.Context(), "tcp", at); err == nil {
		t.Error("the server still listens")
	}
}

func TestAddressInUseIsAnError(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	group := &errgroup.Group{}
	if err := httpserver.Start(t.Context(), group, httpserver.Config{Address: listener.Addr().String(), Handler: http.NotFoundHandler()}); err == nil {
		t.Error("no error")
	}
}
