package main

import (
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// connections are the open connections of a server. Each is handed over between two requests: one that is in a request is
// answered first. Clients must not send a request before they have the answer to the one before, as nearly none does.
type connections struct {
	mu        sync.Mutex
	open      map[*connection]bool
	successor *net.UnixConn // nil until there is one
	handed    int
	none      chan struct{} // closed when no connection is open after the successor has come
}

func newConnections() *connections {
	return &connections{open: map[*connection]bool{}, none: make(chan struct{})}
}

// of returns a listener whose connections are handed over one day.
func (c *connections) of(listener net.Listener) net.Listener { return &watched{listener, c} }

type watched struct {
	net.Listener
	all *connections
}

// Accept implements net.Listener.
func (w *watched) Accept() (net.Conn, error) {
	accepted, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tcp, ok := accepted.(*net.TCPConn)
	if !ok {
		return nil, errors.Join(errors.New("not a TCP connection"), accepted.Close())
	}
	connection := &connection{TCPConn: tcp, all: w.all}
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	w.all.open[connection] = true
	return connection, nil
}

// stateChanged is http.Server.ConnState.
func (c *connections) stateChanged(changed net.Conn, state http.ConnState) {
	if connection, ok := changed.(*connection); ok && state == http.StateIdle {
		c.mu.Lock()
		defer c.mu.Unlock()
		connection.busy = false
	}
}

// handOver sends all connections to the successor, and returns how many. Those that are in a request when the limit is over
// stay open.
func (c *connections) handOver(successor *net.UnixConn, limit time.Duration) int {
	c.mu.Lock()
	c.successor = successor
	if len(c.open) == 0 {
		close(c.none)
	}
	for connection := range c.open {
		if !connection.busy {
			_ = connection.TCPConn.SetReadDeadline(time.Unix(1, 0)) // wakes the read that waits for the next request
		}
	}
	c.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.none:
	case <-timer.C:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.handed
}

// connection of a client.
type connection struct {
	*net.TCPConn
	all *connections
	// busy: a part of a request has been read, and the answer has not been completed.
	busy bool
}

// errLeaving ends the server's wait for the next request of a connection. It has the type that net/http takes for the end of
// a connection, to which it does not answer.
var errLeaving = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}

// Read implements net.Conn.
func (c *connection) Read(p []byte) (int, error) {
	if c.leaving() {
		return 0, errLeaving
	}
	n, err := c.TCPConn.Read(p)
	if n > 0 {
		c.all.mu.Lock()
		defer c.all.mu.Unlock()
		if c.all.successor != nil && !c.busy {
			_ = c.TCPConn.SetReadDeadline(time.Time{}) // handOver was a moment too late
		}
		c.busy = true
	}
	return n, err
}

// SetReadDeadline implements net.Conn.
func (c *connection) SetReadDeadline(t time.Time) error {
	if c.leaving() {
		return nil
	}
	return c.TCPConn.SetReadDeadline(t)
}

func (c *connection) leaving() bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.all.successor != nil && !c.busy
}

// Close implements net.Conn. A connection between two requests is given to the successor, if there is one.
func (c *connection) Close() error {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if !c.all.open[c] {
		return net.ErrClosed
	}
	delete(c.all.open, c)
	var err error
	if c.all.successor != nil && !c.busy {
		if err = send(c.all.successor, c.TCPConn); err == nil {
			c.all.handed++
		}
	}
	if c.all.successor != nil && len(c.all.open) == 0 {
		close(c.all.none)
	}
	return errors.Join(err, c.TCPConn.Close())
}
