// Package serverclock measures the API server's clock, in which the times of objects are written.
package serverclock

import (
	"net/http"
	"sync/atomic"
	"time"
)

// Clock measures the difference between the API server's clock and ours, from the Date header of its responses (RFC 9110
// section 6.6.1, resolution one second).
type Clock struct {
	offset atomic.Int64
}

// tolerance is the error of the measurement: the resolution of the header and the latency of the response.
const tolerance = 2 * time.Second

// Offset is the API server's clock minus ours; zero while they agree within two seconds.
func (c *Clock) Offset() time.Duration { return time.Duration(c.offset.Load()) }

// Wrap returns a transport that reports to the clock. It is for rest.Config.Wrap.
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
