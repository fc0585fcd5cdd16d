package probe

import (
	"context"
	"net"
)

// TCP connects to Address, "host:port", and hangs up.
type TCP struct {
	Address string
}

// Probe implements Prober.
func (t TCP) Probe(ctx context.Context) Outcome {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.Address)
	if err != nil {
		return failed("%s", reason(ctx, err))
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		// Reset instead of a farewell: thousands of probes would leave as many ports in TIME_WAIT.
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
	return Outcome{State: Succeeded, Message: "connected"}
}
