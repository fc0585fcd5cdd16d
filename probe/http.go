package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/refit-project/refit/probe/transport"
)

// maxHeader limits the header of a response, in bytes.
const maxHeader = 64 << 10

// maxRedirects is the limit of net/http.
const maxRedirects = 10

// HTTP sends a request to a web server. Create it with NewHTTP.
type HTTP struct {
	config    HTTPConfig
	request   *http.Request
	prepared  *transport.Request // the prepared request
	transport *transport.Transport
}

// HTTPConfig says what to request and which responses are successes.
type HTTPConfig struct {
	// URL has the scheme http or https.
	URL string
	// Method is the method of the request; empty means GET.
	Method string
	// Header is sent with the request. Host sets the request's host.
	Header http.Header
	// ExpectedStatus is the status of a successful response; 0 means any of 200 to 399, as in Kubernetes.
	ExpectedStatus int
	// JSONPath extracts the result from the body, see CheckJSONPath; without it the body is the result.
	JSONPath string
	// SkipTLSVerify accepts every certificate, as Kubernetes' probes do.
	SkipTLSVerify bool
}

// NewHTTP returns an HTTP prober, or all errors in config at once.
func NewHTTP(config HTTPConfig) (*HTTP, error) {
	var errs []error
	u, err := url.Parse(config.URL)
	switch {
	case err != nil:
		errs = append(errs, err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		errs = append(errs, fmt.Errorf("URL %q: want http or https and a host", config.URL))
	}
	// A method is a token, like the name of a header field (RFC 9110, 9.1 and 5.1).
	if config.Method != "" && !httpguts.ValidHeaderFieldName(config.Method) {
		errs = append(errs, fmt.Errorf("method %q: not a token", config.Method))
	}
	for name, values := range config.Header {
		if !httpguts.ValidHeaderFieldName(name) || slices.ContainsFunc(values, notHeaderValue) {
			errs = append(errs, fmt.Errorf("header %q: not allowed in HTTP", name))
		}
	}
	if config.ExpectedStatus != 0 && (config.ExpectedStatus < 100 || config.ExpectedStatus > 999) {
		errs = append(errs, fmt.Errorf("expected status %d: not an HTTP status", config.ExpectedStatus))
	}
	if config.JSONPath != "" {
		errs = append(errs, CheckJSONPath(config.JSONPath))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("http probe: %w", err)
	}
	request := newRequest(u, config)
	prepared, err := transport.Prepare(request)
	if err != nil {
		return nil, fmt.Errorf("http probe: %w", err)
	}
	return &HTTP{config: config, request: request, prepared: prepared, transport: &transport.Transport{
		Dial: dialer().DialContext, MaxHeader: maxHeader, TLS: &tls.Config{
			InsecureSkipVerify: config.SkipTLSVerify, //nolint:gosec // like Kubernetes' probes, if requested
			MinVersion:         tls.VersionTLS12,
		},
	}}, nil
}

func notHeaderValue(s string) bool { return !httpguts.ValidHeaderFieldValue(s) }

// sameHostRedirects only follows redirects to the same host. A redirect to another host is itself the response, so that
// the probed application cannot send this program, which may reach more hosts, to a host of its choice.
func sameHostRedirects(next *http.Request, via []*http.Request) error {
	if next.URL.Hostname() != via[0].URL.Hostname() || len(via) >= maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// newRequest returns the request to send.
func newRequest(u *url.URL, config HTTPConfig) *http.Request {
	header := http.Header{}
	for name, values := range config.Header {
		header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	if len(header.Values("User-Agent")) == 0 {
		header.Set("User-Agent", "refit-probe")
	}
	if len(header.Values("Accept")) == 0 {
		header.Set("Accept", "*/*")
	}
	return &http.Request{Method: config.Method, URL: u, Header: header, Host: header.Get("Host")}
}

// Probe implements Prober. No response in time is a failure. If the response is a success but has nothing at the JSON
// path, the state is Unknown.
func (h *HTTP) Probe(ctx context.Context) Outcome {
	resp, err := h.ask(ctx)
	if err != nil {
		return failed("%s", reason(ctx, err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if !h.isExpected(resp.StatusCode) {
		return failed("status %d, want %s", resp.StatusCode, h.expectedStatus())
	}
	if err != nil {
		return failed("read body: %s", reason(ctx, err))
	}
	return result(body, h.config.JSONPath)
}

// ask sends the request and follows redirects. It uses http.Client, which copies requests so that it can follow
// redirects, only if there is a redirect.
func (h *HTTP) ask(ctx context.Context) (*http.Response, error) {
	resp, err := h.transport.Send(ctx, h.prepared)
	if err != nil || resp.StatusCode < 300 || resp.StatusCode > 399 || resp.Header.Get("Location") == "" {
		return resp, err
	}
	client := http.Client{CheckRedirect: sameHostRedirects, Transport: &transport.Continued{First: resp, Next: h.transport}}
	return client.Do(h.request.WithContext(ctx))
}

func (h *HTTP) isExpected(status int) bool {
	if h.config.ExpectedStatus == 0 {
		return status >= 200 && status < 400
	}
	return status == h.config.ExpectedStatus
}

func (h *HTTP) expectedStatus() string {
	if h.config.ExpectedStatus == 0 {
		return "200 to 399"
	}
	return fmt.Sprint(h.config.ExpectedStatus)
}

// reason returns the error without the URL that net/http puts in front of it: the URL may contain a password, and many
// users can read the message.
func reason(ctx context.Context, err error) string {
	// The dialer checks the deadline itself, and may notice it a moment before ctx does.
	if late := net.Error(nil); errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.As(err, &late) && late.Timeout() {
		return "no answer in time"
	}
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	return localEnd.ReplaceAllString(strings.TrimSpace(err.Error()), "")
}

// localEnd matches the local address in errors of package net. Its port differs with each connection, so the same
// reason would look like a new one after each probe.
var localEnd = regexp.MustCompile(`[0-9a-fA-F.:%\[\]]+:[0-9]+->`)
