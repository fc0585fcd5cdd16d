// Package podport connects to a port of a pod through the API server, as kubectl port-forward does, without listening on
// a port of this machine. Programs in the pod that listen on loopback only are reached, too.
//
// What is sent to the port must stay out.
package podport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// maxError bounds what kubelet says about a port, in bytes.
const maxError = 4 << 10

// Client returns a client whose requests go to a port of a pod, whatever host their URL has. Each has a connection of its own.
func Client(config *rest.Config, namespace, pod string, port int) (*http.Client, error) {
	dialer, err := dialerFor(config, namespace, pod)
	if err != nil {
		return nil, fmt.Errorf("connect to pod %s: %w", pod, err)
	}
	forward := func(context.Context, string, string) (net.Conn, error) { return dial(dialer, port) }
	return &http.Client{Transport: &http.Transport{DialContext: forward, DisableKeepAlives: true}}, nil
}

// dialerFor tries WebSockets first and then SPDY, as kubectl does since Kubernetes 1.31.
func dialerFor(config *rest.Config, namespace, pod string) (httpstream.Dialer, error) {
	clients, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	url := clients.RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	older := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	newer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(newer, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// dial opens the two streams of a forwarded connection: its data, and what kubelet says if it cannot connect.
func dial(dialer httpstream.Dialer, port int) (net.Conn, error) {
	connection, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	failures, err := connection.CreateStream(headers)
	if err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	_ = failures.Close() // nothing is written to it
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(headers)
	if err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	return &conn{Stream: data, connection: connection, failures: failures}, nil
}

// conn is a connection to the port. It has no deadlines: the contexts of requests end them.
type conn struct {
	httpstream.Stream

	connection httpstream.Connection
	failures   httpstream.Stream
	close      sync.Once
}

// Read implements net.Conn. If kubelet could not connect, the error says why.
func (c *conn) Read(into []byte) (int, error) {
	n, err := c.Stream.Read(into)
	if n > 0 || err == nil {
		return n, err
	}
	if said, readErr := io.ReadAll(io.LimitReader(c.failures, maxError)); readErr == nil && len(said) > 0 {
		return 0, fmt.Errorf("%w: %s", ErrPort, reason(string(said)))
	}
	return n, err
}

// ErrPort means that nothing answers at the port of the pod.
var ErrPort = errors.New("the port of the pod cannot be reached")

// reason returns the last part of what kubelet says, which begins with IDs of the runtime.
func reason(said string) string {
	said = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, said))
	if i := strings.LastIndex(said, "failed to"); i >= 0 {
		return said[i:]
	}
	return said
}

// Close implements net.Conn.
func (c *conn) Close() (err error) {
	c.close.Do(func() { err = c.connection.Close() })
	return err
}

// address is what the ends of a forwarded connection are called.
type address struct{}

func (address) Network() string { return "tcp" }
func (address) String() string  { return "pod" }

func (*conn) LocalAddr() net.Addr              { return address{} }
func (*conn) RemoteAddr() net.Addr             { return address{} }
func (*conn) SetDeadline(time.Time) error      { return nil }
func (*conn) SetReadDeadline(time.Time) error  { return nil }
func (*conn) SetWriteDeadline(time.Time) error { return nil }
