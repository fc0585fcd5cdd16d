// Package transport sends HTTP requests over connections of their own, for probes.
package transport

import (
	"bufio"
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
	writeBuffer      = 512
)

// buffers are used by one probe after another: there are many probes, of which few run at the same moment.
var buffers = sync.Pool{New: func() any {
	return &bufferPair{reader: bufio.NewReaderSize(nil, readBuffer), writer: bufio.NewWriterSize(nil, writeBuffer)}
}}

type bufferPair struct {
	reader *bufio.Reader
	writer *bufio.Writer
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	conn, err := t.connect(ctx, request)
	if err != nil {
		return nil, err
	}
	e := &exchange{conn: conn, buffers: buffers.Get().(*bufferPair)}       //nolint:forcetypeassert // of the pool's New
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

func (t *Transport) connect(ctx context.Context, request *http.Request) (net.Conn, error) {
	port := request.URL.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[request.URL.Scheme]
	}
	conn, err := t.Dial(ctx, "tcp", net.JoinHostPort(request.URL.Hostname(), port))
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	if request.URL.Scheme != "https" {
		return conn, nil
	}
	config := t.TLS.Clone()
	if config.ServerName == "" {
		config.ServerName = request.URL.Hostname()
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
	conn    net.Conn
	stop    func() bool
	buffers *bufferPair
	body    io.ReadCloser
	closed  bool
}

func (e *exchange) do(request *http.Request, maxHeader int64) (*http.Response, error) {
	e.buffers.writer.Reset(e.conn)
	plain := request.Clone(request.Context())
	plain.Close = true
	if err := errors.Join(plain.Write(e.buffers.writer), e.buffers.writer.Flush()); err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: e.conn, N: maxHeader}
	e.buffers.reader.Reset(limited)
	for range maxInformational + 1 {
		response, err := http.ReadResponse(e.buffers.reader, request)
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
	e.buffers.reader.Reset(nil)
	e.buffers.writer.Reset(nil)
	buffers.Put(e.buffers)
	return nil
}
