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

// maxHeader bounds the header of an answer, in bytes.
const maxHeader = 64 << 10

// maxRedirects is where net/http gives up as well.
const maxRedirects = 10

// HTTP asks a web server. Make it with NewHTTP.
type HTTP struct {
	config    HTTPConfig
	request   *http.Request
	prepared  *transport.Request // the same
	transport *transport.Transport
}

// HTTPConfig says what to ask and what to make of the answer.
type HTTPConfig struct {
	// URL is http or https.
	URL string
	// Method is GET when empty.
	Method string
	// Header goes with the request; Host is honoured.
	Header http.Header
	// ExpectedStatus is the status that means success; 0 is any of 200 to 399, as in Kubernetes.
	ExpectedStatus int
	// JSONPath takes the result out of the body, see CheckJSONPath; without it the body is the result.
	JSONPath string
	// SkipTLSVerify accepts every certificate, as Kubernetes' probes do.
	SkipTLSVerify bool
}

// NewHTTP checks config, reporting all faults at once.
func NewHTTP(config HTTPConfig) (*HTTP, error) {
	var faults []error
	u, err := url.Parse(config.URL)
	switch {
	case err != nil:
		faults = append(faults, err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		faults = append(faults, fmt.Errorf("URL %q: want http or https and a host", config.URL))
	}
	// A method is a token, as the name of a header field is (RFC 9110, 9.1 and 5.1).
	if config.Method != "" && !httpguts.ValidHeaderFieldName(config.Method) {
		faults = append(faults, fmt.Errorf("method %q: not a token", config.Method))
	}
	for name, values := range config.Header {
		if !httpguts.ValidHeaderFieldName(name) || slices.ContainsFunc(values, notHeaderValue) {
			faults = append(faults, fmt.Errorf("header %q: not allowed in HTTP", name))
		}
	}
	if config.ExpectedStatus != 0 && (config.ExpectedStatus < 100 || config.ExpectedStatus > 999) {
		faults = append(faults, fmt.Errorf("expected status %d: not an HTTP status", config.ExpectedStatus))
	}
	if config.JSONPath != "" {
		faults = append(faults, CheckJSONPath(config.JSONPath))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("http probe: %w", err)
	}
	request := newRequest(u, config)
	prepared, err := transport.Prepare(request)
	if err != nil {
		return nil, fmt.Errorf("http probe: %w", err)
	}
	return &HTTP{config: config, request: request, prepared: prepared, transport: &transport.Transport{
		Dial: dialer().DialContext, MaxHeader: maxHeader, TLS: &tls.Config{
			InsecureSkipVerify: config.SkipTLSVerify, //nolint:gosec // as Kubernetes' probes, when asked for
			MinVersion:         tls.VersionTLS12,
		},
	}}, nil
}

func notHeaderValue(s string) bool { return !httpguts.ValidHeaderFieldValue(s) }

// sameHostRedirects follows redirects on the same host only. One that leads elsewhere is itself the answer, so that the
// thing probed cannot send us, who may reach more than it does, to a place of its choice.
func sameHostRedirects(next *http.Request, via []*http.Request) error {
	if next.URL.Hostname() != via[0].URL.Hostname() || len(via) >= maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// newRequest is what is asked.
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

// Probe implements Prober. No answer in time is a failure; an answer that is well but has nothing at the JSON
// path is unknown.
func (h *HTTP) Probe(ctx context.Context) Outcome {
	resp, err := h.ask(ctx)
	if err != nil {
		return failed("%s", reason(ctx, err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if !h.well(resp.StatusCode) {
		return failed("status %d, want %s", resp.StatusCode, h.want())
	}
	if err != nil {
		return failed("read body: %s", reason(ctx, err))
	}
	return result(body, h.config.JSONPath)
}

// ask sends the request and follows redirects. http.Client, which makes copies of a request to keep it for redirects, has
// a part only in those.
func (h *HTTP) ask(ctx context.Context) (*http.Response, error) {
	resp, err := h.transport.Send(ctx, h.prepared)
	if err != nil || resp.StatusCode < 300 || resp.StatusCode > 399 || resp.Header.Get("Location") == "" {
		return resp, err
	}
	client := http.Client{CheckRedirect: sameHostRedirects, Transport: &transport.Continued{First: resp, Next: h.transport}}
	return client.Do(h.request.WithContext(ctx))
}

func (h *HTTP) well(status int) bool {
	if h.config.ExpectedStatus == 0 {
		return status >= 200 && status < 400
	}
	return status == h.config.ExpectedStatus
}

func (h *HTTP) want() string {
	if h.config.ExpectedStatus == 0 {
		return "200 to 399"
	}
	return fmt.Sprint(h.config.ExpectedStatus)
}

// reason leaves out the URL that net/http puts before every error: it may hold a password, and a message goes
// where many can read it.
func reason(ctx context.Context, err error) string {
	// A dialer notices the deadline itself, and may be a moment ahead of ctx.
	if late := net.Error(nil); errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.As(err, &late) && late.Timeout() {
		return "no answer in time"
	}
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	return localEnd.ReplaceAllString(strings.TrimSpace(err.Error()), "")
}

// localEnd is our own address in an error of package net. Its port is another each time, which would make the same
// reason a new one with each probe.
var localEnd = regexp.MustCompile(`[0-9a-fA-F.:%\[\]]+:[0-9]+->`)
