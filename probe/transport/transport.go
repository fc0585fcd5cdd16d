// Package transport sends HTTP requests for probes, each over a new connection.
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

// Transport sends each request over a new connection. A kept connection would only prove that the server worked before,
// not that it works now.
//
// Transport does the same as http.Transport for such a request, without its two goroutines and its management of idle
// connections, which take half of a probe's CPU time. At the end it resets the connection, so that thousands of probes
// leave no ports in TIME_WAIT. It uses no proxy: the probed application is near, and a proxy from the environment would
// answer in its place. It does not request compression, because the size limit applies to what is read.
type Transport struct {
	// Dial connects. TLS is used for https.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	TLS  *tls.Config
	// MaxHeader limits the header of a response, in bytes.
	MaxHeader int64
}

const (
	// maxInformational limits the number of 1xx responses before the final one, like net/http.
	maxInformational = 5
	readBuffer       = 1 << 10
)

// readers are shared by all probes: there are many probes, and few run at the same moment.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readBuffer) }}

// Request is a request that is sent many times, by one goroutine at a time. Create it with Prepare.
type Request struct {
	request *http.Request // set in responses; not changed
	address string        // host:port
	message []byte        // the bytes to send
}

// Prepare encodes a request without a body, once for all sends.
func Prepare(request *http.Request) (*Request, error) {
	port := request.URL.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[request.URL.Scheme]
	}
	sent := request.Clone(request.Context())
	sent.Close = true
	// http.Client does the same.
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

// Send sends a request and reads the response, whose body must be closed. Both stop when ctx ends.
func (t *Transport) Send(ctx context.Context, request *Request) (*http.Response, error) {
	conn, err := t.connect(ctx, request)
	if err != nil {
		return nil, err
	}
	e := &exchange{conn: conn, reader: readers.Get().(*bufio.Reader)}      //nolint:forcetypeassert // New of the pool returns this type
	e.stop = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) }) // ends reading and writing
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

// exchange is one request and its response. Closing the response's body closes it.
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
		limited.N = 1 << 62 // the body has a limit of its own
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

// Close closes the connection without reading the rest of the body.
func (e *exchange) Close() error {
	if e.closed {
		return nil
	}
	e.closed = true
	e.stop()
	_ = e.conn.Close() // an error would change nothing
	e.reader.Reset(nil)
	readers.Put(e.reader)
	return nil
}
