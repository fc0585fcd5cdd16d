// Package transport sends HTTP requests over connections of their own, for probes.
package transport

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Transport sends each request over a connection of its own. A kept connection would prove that the server worked, not
// that it does.
//
// It does what http.Transport does for such a request, without its two goroutines and its bookkeeping of idle
// connections, which take half of a probe's CPU; and it resets the connection in the end, so that thousands of probes
// leave no ports in TIME_WAIT. There is no proxy: the thing probed is near, and a proxy of the environment would answer in
// its place. Compression is not asked for: the limit is on what is read.
type Transport struct {
	// Dial connects; TLS is for https.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	TLS  *tls.Config
	// MaxHeader bounds the header of a response, in bytes.
	MaxHeader int64
}

const (
	// maxInformational bounds the responses of status 1xx before the one that counts, as net/http does.
	maxInformational = 5
	readBuffer       = 1 << 10
)

// readers are used by one probe after another: there are many probes, of which few run at the same moment.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readBuffer) }}

// Request is one that is sent many times, by one goroutine at a time. Make it with Prepare.
type Request struct {
	request *http.Request // which answers belong to; not changed
	address string        // host:port
	message []byte        // as it is sent
}

// Prepare makes the bytes of a request without a body, once for all times that it is sent.
func Prepare(request *http.Request) (*Request, error) {
	port := request.URL.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[request.URL.Scheme]
	}
	sent := request.Clone(request.Context())
	sent.Close = true
	// As http.Client does it.
	if user := sent.URL.User; user != nil && sent.Header.Get("Authorization") == "" {
		password, _ := user.Password()
		sent.SetBasicAuth(user.Username(), password)
	}
	var message bytes.Buffer
	if err := sent.Write(&message); err != nil {
		return nil, err
	}
	return &Request{request: request, address: net.JoinHostPort(request.URL.Hostname(), port), message: message.Bytes()}, nil
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	prepared, err := Prepare(request)
	if err != nil {
		return nil, err
	}
	return t.Send(request.Context(), prepared)
}

// Send sends a request and reads the response, whose body has to be closed. Both end with ctx.
func (t *Transport) Send(ctx context.Context, request *Request) (*http.Response, error) {
	conn, err := t.connect(ctx, request)
	if err != nil {
		return nil, err
	}
	e := &exchange{conn: conn, reader: readers.Get().(*bufio.Reader)}      //nolint:forcetypeassert // of the pool's New
	e.stop = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) }) // which ends reading and writing
	response, err := e.do(request, t.MaxHeader)
	if err != nil {
		_ = e.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	return response, nil
}

var past = time.Unix(1, 0)

func (t *Transport) connect(ctx context.Context, request *Request) (net.Conn, error) {
	conn, err := t.Dial(ctx, "tcp", request.address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	if request.request.URL.Scheme != "https" {
		return conn, nil
	}
	config := t.TLS.Clone()
	if config.ServerName == "" {
		config.ServerName = request.request.URL.Hostname()
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// exchange is one request and its response. It is closed with the response's body.
type exchange struct {
	conn   net.Conn
	stop   func() bool
	reader *bufio.Reader
	body   io.ReadCloser
	closed bool
}

func (e *exchange) do(request *Request, maxHeader int64) (*http.Response, error) {
	if _, err := e.conn.Write(request.message); err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: e.conn, N: maxHeader}
	e.reader.Reset(limited)
	for range maxInformational + 1 {
		response, err := http.ReadResponse(e.reader, request.request)
		switch {
		case err != nil && limited.N <= 0:
			return nil, fmt.Errorf("the header of the response exceeds %d bytes", maxHeader)
		case err != nil:
			return nil, err
		case response.StatusCode >= 100 && response.StatusCode < 200 && response.StatusCode != http.StatusSwitchingProtocols:
			continue
		}
		limited.N = 1 << 62 // the reader of the body has a limit of its own
		e.body, response.Body = response.Body, e
		return response, nil
	}
	return nil, errors.New("too many responses of status 1xx")
}

// Read implements io.Reader for the body.
func (e *exchange) Read(p []byte) (int, error) {
	if e.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	return e.body.Read(p)
}

// Close ends the connection. What is left of the body is not read.
func (e *exchange) Close() error {
	if e.closed {
		return nil
	}
	e.closed = true
	e.stop()
	_ = e.conn.Close() // an error would not change anything
	e.reader.Reset(nil)
	readers.Put(e.reader)
	return nil
}
