// Package serverclock measures the API server's clock, in which the times of objects are written.
package serverclock

import (
	"net/http"
	"sync/atomic"
	"time"
)

// Clock measures how far the API server's clock is from ours, from the Date header of its answers (RFC 9110
// section 6.6.1, resolution one second).
type Clock struct {
	offset atomic.Int64
}

// tolerance is below what the header can tell: its resolution and the way of the answer.
const tolerance = 2 * time.Second

// Offset is the API server's clock minus ours; zero while they agree within two seconds.
func (c *Clock) Offset() time.Duration { return time.Duration(c.offset.Load()) }

// Wrap makes a transport report to the clock. It fits rest.Config.Wrap.
func (c *Clock) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil {
			c.observe(response.Header.Get("Date"), time.Now())
		}
		return response, err
	})
}

func (c *Clock) observe(date string, now time.Time) {
	server, err := http.ParseTime(date)
	if err != nil {
		return
	}
	offset := server.Sub(now)
	if offset.Abs() <= tolerance {
		offset = 0
	}
	c.offset.Store(int64(offset))
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
