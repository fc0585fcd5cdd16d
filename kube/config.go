package kube

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config loads the connection to the API server: from the kubeconfig file if given, else from the pod's
// service account. There is no client-side rate limit: the API server's own priority and fairness is the one
// that knows what it can bear, and a limit here would hold up a hundred requests made at once.
func Config(kubeconfig, userAgent string) (*rest.Config, error) {
	load := rest.InClusterConfig
	if kubeconfig != "" {
		load = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", kubeconfig) }
	}
	config, err := load()
	if err != nil {
		return nil, fmt.Errorf("load connection to the API server: %w", err)
	}
	config.UserAgent = userAgent
	config.QPS = -1
	return config, nil
}

// Clock measures how far the API server's clock is from ours, from the Date header of its answers (RFC 9110
// section 6.6.1, resolution one second).
type Clock struct {
	offset atomic.Int64
}

// clockTolerance is below what the header can tell: its resolution and the way of the answer.
const clockTolerance = 2 * time.Second

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
	if offset.Abs() <= clockTolerance {
		offset = 0
	}
	c.offset.Store(int64(offset))
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
