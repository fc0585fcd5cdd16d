package probe

import (
	"context"
	"net"
)

// dialer returns a dialer for one probe. Keep-alive is off: the connection is too short for it, and it costs four
// system calls.
func dialer() *net.Dialer { return &net.Dialer{KeepAlive: -1} }

// TCP connects to Address, "host:port", and closes the connection.
type TCP struct {
	Address string
}

// Probe implements Prober.
func (t TCP) Probe(ctx context.Context) Outcome {
	conn, err := dialer().DialContext(ctx, "tcp", t.Address)
	if err != nil {
		return failed("%s", reason(ctx, err))
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		// Reset the connection when closing it: thousands of probes would otherwise leave as many ports in TIME_WAIT.
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
	return Outcome{State: Succeeded, Message: "connected"}
}
