package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/refit-project/refit/examples/hotupgrade/traffic"
)

// patience is how long a request may take.
const patience = 30 * time.Second

// client sends one request after the other. It speaks HTTP/1.1 by itself: net/http tries requests again by itself that failed
// on a connection that was kept.
type client struct {
	address string
	keep    bool // the connection
	tally   *tally

	connection net.Conn
	reader     *bufio.Reader
	local      string    // address of the connection, or of the last attempt to open one
	opened     time.Time // zero without a connection
	served     int       // requests on the connection
}

// send sends a request in each interval until ctx ends. What has begun is completed.
func (c *client) send(ctx context.Context, offset, interval time.Duration) {
	timer := time.NewTimer(offset)
	defer timer.Stop()
	defer c.close()
	for next := time.Now().Add(offset); ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		answer, failure := c.request(context.WithoutCancel(ctx))
		c.tally.add(answer, failure, time.Since(began))
		next = next.Add(interval)
		timer.Reset(time.Until(next))
	}
}

// request returns the answer, or why there is none.
func (c *client) request(ctx context.Context) (string, *traffic.Failure) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if c.connection == nil {
		if err := c.connect(ctx); err != nil {
			return "", c.failure(err)
		}
	}
	answer, last, err := c.exchange(ctx)
	if err != nil {
		failure := c.failure(err)
		c.close()
		return "", failure
	}
	c.served++
	if last || !c.keep {
		c.close()
	}
	return answer, nil
}

func (c *client) connect(ctx context.Context) error {
	socket := &socket{}
	defer socket.close()
	connection, err := (&net.Dialer{Control: socket.control}).DialContext(ctx, "tcp", c.address)
	c.local = socket.local()
	if err != nil {
		return err
	}
	c.connection, c.reader, c.opened, c.served = connection, bufio.NewReader(connection), time.Now(), 0
	c.tally.connected(c.keep)
	return nil
}

// failure describes why the request has failed, with the state of its connection.
func (c *client) failure(err error) *traffic.Failure {
	failure := &traffic.Failure{Time: time.Now(), Local: c.local, Kept: c.served > 0, Error: err.Error(), Refused: refused(err)}
	if !c.opened.IsZero() {
		failure.Age = milliseconds(time.Since(c.opened))
	}
	return failure
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// exchange sends a request and reads its answer. Last says that the server closes the connection.
func (c *client) exchange(ctx context.Context) (answer string, last bool, err error) {
	deadline, _ := ctx.Deadline()
	if err := c.connection.SetDeadline(deadline); err != nil {
		return "", false, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.address+"/", http.NoBody)
	if err != nil {
		return "", false, err
	}
	request.Close = !c.keep
	if err := request.Write(c.connection); err != nil {
		return "", false, fmt.Errorf("send request: %w", err)
	}
	response, err := http.ReadResponse(c.reader, request)
	if err != nil {
		return "", false, fmt.Errorf("read answer: %w", err)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return "", false, fmt.Errorf("read answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return "", false, errors.New(response.Status)
	}
	return strings.TrimSpace(string(body)), response.Close, nil
}

func (c *client) close() {
	if c.connection != nil {
		_ = c.connection.Close()
		c.connection, c.opened, c.served = nil, time.Time{}, 0
	}
}

// refused reports whether nothing accepts connections.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
