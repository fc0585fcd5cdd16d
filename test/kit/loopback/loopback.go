// Package loopback has addresses for the servers of tests.
package loopback

import (
	"math/rand/v2"
	"net"
	"testing"
)

// Address returns an address, with a port, that nothing listens on. The IP address is a random one of the loopback network,
// so that no other test takes the port before it is used.
func Address(tb testing.TB) string {
	tb.Helper()
	host := net.IPv4(127, byte(1+rand.N(250)), byte(rand.N(250)), byte(1+rand.N(250))).String()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		tb.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		tb.Fatal(err)
	}
	return address
}
