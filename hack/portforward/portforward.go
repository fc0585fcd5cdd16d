// Package portforward reaches a port of a pod from outside of the cluster, through kubectl port-forward. What is
// asked there must stay out.
package portforward

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// killDelay is what kubectl may take to end.
const killDelay = 2 * time.Second

// Port of a pod. kubectl runs from the first dial on, and is started again when it has ended, as it does when nothing listens.
type Port struct {
	Kubectl, Namespace, Pod string
	Number                  int

	mu      sync.Mutex
	address string
	stop    context.CancelFunc
	ended   chan struct{}
}

// Client asks the port, whatever host a URL names. Each request has a connection of its own.
func (p *Port) Client(timeout time.Duration) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return p.Dial(ctx) }
	return &http.Client{Timeout: timeout, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}

// Dial connects to the port. A kubectl that is about to end refuses connections: it is stopped, and another one is asked.
func (p *Port) Dial(ctx context.Context) (net.Conn, error) {
	address, err := p.forwarded(ctx)
	if err != nil {
		return nil, err
	}
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return connection, err
	}
	p.end(address)
	if address, err = p.forwarded(ctx); err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

var listening = regexp.MustCompile(`127\.0\.0\.1:\d+`)

func (p *Port) forwarded(ctx context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != nil {
		select {
		case <-p.ended:
		default:
			return p.address, nil
		}
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	command := exec.CommandContext(running, p.Kubectl, "port-forward", "--namespace", p.Namespace, "pod/"+p.Pod, ":"+strconv.Itoa(p.Number))
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = killDelay
	var said strings.Builder
	command.Stderr = &said
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		stop()
		return "", fmt.Errorf("forward port %d of pod %s: %w", p.Number, p.Pod, err)
	}
	lines := bufio.NewReader(out)
	line, _ := lines.ReadString('\n') // if there is none, the process says why elsewhere
	address := listening.FindString(line)
	if address == "" {
		stop()
		err := command.Wait()
		return "", fmt.Errorf("forward port %d of pod %s: %w", p.Number, p.Pod, errors.Join(err, errors.New(strings.TrimSpace(said.String()))))
	}
	p.address, p.stop, p.ended = address, stop, make(chan struct{})
	go func(ended chan struct{}) {
		defer close(ended)
		_, _ = io.Copy(io.Discard, lines) // it says something at each connection
		_ = command.Wait()                // it ends when it is stopped, or when the next dial will start another
	}(p.ended)
	return address, nil
}

// Close ends kubectl and waits for that.
func (p *Port) Close() {
	p.mu.Lock()
	address := p.address
	p.mu.Unlock()
	p.end(address)
}

// end of the kubectl that listens at an address, unless another one has been started since.
func (p *Port) end(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != nil && p.address == address {
		p.stop()
		<-p.ended
		p.stop = nil
	}
}
