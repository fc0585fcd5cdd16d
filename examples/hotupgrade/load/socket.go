package main

import (
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// firstDescriptor is the first that is not standard input, output or error.
const firstDescriptor = 3

// socket is a duplicate of the descriptor that a connection is opened with: net closes its own when the connection is refused, and
// then nothing tells which local port was refused.
type socket struct{ fd int }

// control is for net.Dialer. It is called again for each address that is tried.
func (s *socket) control(_, _ string, connection syscall.RawConn) error {
	s.close()
	return connection.Control(func(fd uintptr) {
		if fd, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, firstDescriptor); err == nil {
			s.fd = fd
		}
	})
}

// local is the address of the socket; empty if it is not known.
func (s *socket) local() string {
	if s.fd == 0 {
		return ""
	}
	name, err := unix.Getsockname(s.fd)
	if err != nil {
		return ""
	}
	switch name := name.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(name.Addr), uint16(name.Port)).String() //nolint:gosec // ports have 16 bits
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(name.Addr), uint16(name.Port)).String() //nolint:gosec // as above
	}
	return ""
}

func (s *socket) close() {
	if s.fd != 0 {
		_ = unix.Close(s.fd)
		s.fd = 0
	}
}
