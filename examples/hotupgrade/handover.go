package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// handoverLimit bounds the hand-over of the listening socket.
const handoverLimit = 5 * time.Second

// openEntrance opens the socket at which a successor asks. It has to be open before the container serves: a successor that finds
// none opens the address, which is in use.
func openEntrance(path string) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // of a container that was killed
		return nil, fmt.Errorf("remove old socket: %w", err)
	}
	entrance, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for a successor: %w", err)
	}
	entrance.SetUnlinkOnClose(false) // the successor has its own socket at this path by then
	return entrance, nil
}

// offer waits for a successor, sends it the listening socket and closes the entrance. It returns the connection to the successor
// when that accepts connections, or an error when ctx has ended.
func offer(ctx context.Context, entrance *net.UnixListener, listener net.Listener) (*net.UnixConn, error) {
	defer entrance.Close() //nolint:errcheck // nothing depends on it
	defer context.AfterFunc(ctx, func() { _ = entrance.Close() })()
	for {
		successor, err := entrance.AcceptUnix()
		if err != nil {
			return nil, fmt.Errorf("offer: %w", err)
		}
		if err = sendListener(successor, listener); err == nil {
			return successor, nil
		}
		_ = successor.Close()
	}
}

// sendListener waits until the successor says that it has the socket.
func sendListener(successor *net.UnixConn, listener net.Listener) error {
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return errors.New("not a TCP socket")
	}
	if err := successor.SetDeadline(time.Now().Add(handoverLimit)); err != nil {
		return err
	}
	if err := send(successor, tcp); err != nil {
		return fmt.Errorf("send listening socket: %w", err)
	}
	if _, err := successor.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("wait for the successor: %w", err)
	}
	return successor.SetDeadline(time.Time{})
}

// send sends a socket, with one byte: a message without any is dropped.
func send(to *net.UnixConn, socket syscall.Conn) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	// Not File().Fd(): it makes the socket blocking, also for us, and our accept then takes a connection after the end.
	var sent error
	err = raw.Control(func(descriptor uintptr) {
		_, _, sent = to.WriteMsgUnix([]byte{0}, syscall.UnixRights(int(descriptor)), nil)
	})
	return errors.Join(err, sent)
}

// takeOver asks the predecessor for its listening socket. The connection to it is where its clients' connections come from.
func takeOver(ctx context.Context, path string) (net.Listener, *net.UnixConn, error) {
	ctx, cancel := context.WithTimeout(ctx, handoverLimit)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, nil, fmt.Errorf("ask predecessor: %w", err)
	}
	predecessor, ok := connection.(*net.UnixConn)
	if !ok {
		return nil, nil, errors.New("not a Unix socket")
	}
	listener, err := receiveListener(predecessor)
	if err != nil {
		_ = predecessor.Close()
		return nil, nil, err
	}
	return listener, predecessor, nil
}

func receiveListener(predecessor *net.UnixConn) (net.Listener, error) {
	if err := predecessor.SetDeadline(time.Now().Add(handoverLimit)); err != nil {
		return nil, err
	}
	file, err := receive(predecessor)
	if err != nil {
		return nil, fmt.Errorf("receive listening socket: %w", err)
	}
	defer file.Close() //nolint:errcheck // the listener has a duplicate
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("use listening socket: %w", err)
	}
	if _, err := predecessor.Write([]byte{0}); err != nil {
		return nil, errors.Join(fmt.Errorf("confirm: %w", err), listener.Close())
	}
	return listener, predecessor.SetDeadline(time.Time{})
}

// receive returns the socket of the next message, io.EOF after the last one.
func receive(from *net.UnixConn) (*os.File, error) {
	rights := make([]byte, syscall.CmsgSpace(4))
	n, size, _, _, err := from.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.EOF
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:size])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("%d control messages: %w", len(messages), err)
	}
	descriptors, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(descriptors) != 1 {
		return nil, fmt.Errorf("%d descriptors: %w", len(descriptors), err)
	}
	return os.NewFile(uintptr(descriptors[0]), "socket"), nil
}

// inherited is a listener with the connections of the predecessor's clients.
type inherited struct{ *net.UnixConn }

// Accept implements net.Listener.
func (i *inherited) Accept() (net.Conn, error) {
	file, err := receive(i.UnixConn)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // the connection has a duplicate
	return net.FileConn(file)
}

// Addr implements net.Listener.
func (i *inherited) Addr() net.Addr { return i.LocalAddr() }
