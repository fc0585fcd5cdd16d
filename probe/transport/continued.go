package transport

import "net/http"

// Continued is a RoundTripper for a client whose first request has already been answered. It is used by one goroutine.
type Continued struct {
	First *http.Response
	Next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c *Continued) RoundTrip(request *http.Request) (*http.Response, error) {
	if first := c.First; first != nil {
		c.First = nil
		return first, nil
	}
	return c.Next.RoundTrip(request)
}
