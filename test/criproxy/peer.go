package criproxy

import (
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// peerListener gives each connection an address that says which process is at the other end.
type peerListener struct{ net.Listener }

func (l peerListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if u, ok := conn.(*net.UnixConn); ok {
		return peerConn{Conn: conn, peer: peerOf(u)}, nil
	}
	return conn, nil
}

type peerConn struct {
	net.Conn
	peer peerAddr
}

func (c peerConn) RemoteAddr() net.Addr { return c.peer }

type peerAddr string

func (peerAddr) Network() string  { return "unix" }
func (a peerAddr) String() string { return string(a) }

// peerOf asks the kernel, see SO_PEERCRED in unix(7). The pid is 0 for a process of a PID namespace
// that we cannot see into.
func peerOf(conn *net.UnixConn) peerAddr {
	raw, err := conn.SyscallConn()
	if err != nil {
		return "pid=?"
	}
	var cred *unix.Ucred
	if ctlErr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); ctlErr != nil || err != nil {
		return "pid=?"
	}
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cred.Pid))
	if err != nil {
		comm = []byte("?")
	}
	return peerAddr(fmt.Sprintf("pid=%d comm=%s", cred.Pid, strings.TrimSpace(string(comm))))
}
