package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// handoverLimit bounds a hand-over.
const handoverLimit = 5 * time.Second

// offer waits for a successor and sends it the listening socket. It returns when the successor has it, or ctx has ended.
func offer(ctx context.Context, listener net.Listener, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // of a container that was killed
		return fmt.Errorf("remove old socket: %w", err)
	}
	door, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("offer: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = door.Close() })()
	for {
		connection, err := door.Accept()
		if err != nil {
			_ = door.Close()
			return fmt.Errorf("offer: %w", err)
		}
		// The successor opens a socket of its own at this path when it has ours.
		if err = send(connection, listener); err == nil {
			return nil
		}
		_ = connection.Close()
	}
}

// send hands the socket over and waits until the successor says that it accepts connections.
func send(connection net.Conn, listener net.Listener) error {
	unix, ok := connection.(*net.UnixConn)
	tcp, isTCP := listener.(*net.TCPListener)
	if !ok || !isTCP {
		return errors.New("not a Unix and a TCP socket")
	}
	defer unix.Close() //nolint:errcheck // nothing depends on it
	if err := unix.SetDeadline(time.Now().Add(handoverLimit)); err != nil {
		return err
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	// Not File().Fd(): it makes the socket blocking, also for us, and our accept then takes a connection after the end.
	var sent error
	err = raw.Control(func(descriptor uintptr) {
		_, _, sent = unix.WriteMsgUnix([]byte{0}, syscall.UnixRights(int(descriptor)), nil)
	})
	if err = errors.Join(err, sent); err != nil {
		return fmt.Errorf("send socket: %w", err)
	}
	if _, err := unix.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("wait for the successor: %w", err)
	}
	return nil
}

// receive takes the listening socket of the predecessor over.
func receive(ctx context.Context, path string) (net.Listener, error) {
	ctx, cancel := context.WithTimeout(ctx, handoverLimit)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("ask predecessor: %w", err)
	}
	defer connection.Close() //nolint:errcheck // nothing depends on it
	unix, ok := connection.(*net.UnixConn)
	if !ok {
		return nil, errors.New("not a Unix socket")
	}
	if err := unix.SetDeadline(time.Now().Add(handoverLimit)); err != nil {
		return nil, err
	}
	rights := make([]byte, syscall.CmsgSpace(4))
	_, n, _, _, err := unix.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil, fmt.Errorf("receive socket: %w", err)
	}
	listener, err := listenerOf(rights[:n])
	if err != nil {
		return nil, err
	}
	if _, err := unix.Write([]byte{0}); err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("confirm: %w", err)
	}
	return listener, nil
}

func listenerOf(rights []byte) (net.Listener, error) {
	messages, err := syscall.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("%d control messages: %w", len(messages), err)
	}
	descriptors, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(descriptors) != 1 {
		return nil, fmt.Errorf("%d descriptors: %w", len(descriptors), err)
	}
	file := os.NewFile(uintptr(descriptors[0]), "listener")
	defer file.Close() //nolint:errcheck // the listener has a duplicate
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("use socket: %w", err)
	}
	return listener, nil
}
