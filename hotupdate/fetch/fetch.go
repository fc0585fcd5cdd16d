// Package fetch downloads one source over HTTP, with bounds on time, size, redirects and addresses.
//
// It contains: the HTTP client, retries, and the decision which addresses are allowed. Where the bytes are written must
// stay out.
package fetch

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/refit-project/refit/hotupdate/payload"
	"github.com/refit-project/refit/internal/wait"
)

// Config bounds downloads.
type Config struct {
	// Timeout bounds all attempts for one source together; 5 minutes when zero.
	Timeout time.Duration
	// Attempts is the maximum number of attempts for a source while its errors are transient; 3 when zero.
	Attempts int
	// MaxBytes bounds one source; 256 MiB when zero.
	MaxBytes int64
	// AllowHosts are host names or patterns such as "*.example.org"; empty allows all.
	AllowHosts []string
	// AllowNetworks are the networks of allowed addresses; empty allows all but loopback. The pod's own addresses are
	// allowed if loopback is. Link-local and metadata addresses are always refused.
	AllowNetworks []netip.Prefix
	// RootCAs returns certificates that replace the system's. It is called for every download, because the file may be
	// renewed; nil uses the system's.
	RootCAs func() (*x509.CertPool, error)
	// Header returns headers for the request to a source. They are not sent with redirects to other hosts. It is called for
	// every request, because credentials may be renewed; nil sends none.
	Header func(ctx context.Context) (http.Header, error)
}

var (
	// ErrRefused means that the address, host or scheme is not allowed.
	ErrRefused = errors.New("source refused")
	// ErrFetch means that the content could not be fetched from the server.
	ErrFetch = errors.New("fetch")
)

const (
	maxRedirects  = 5
	maxHeader     = 64 << 10
	firstBackoff  = 200 * time.Millisecond
	fetchedHeader = 30 * time.Second // from the end of the request to the header of the response
)

// WithDefaults replaces zero values.
func (c Config) WithDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Minute
	}
	if c.Attempts == 0 {
		c.Attempts = 3
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 256 << 20
	}
	return c
}

// Fetcher downloads sources. Its methods may be called by several goroutines.
type Fetcher struct {
	config Config
	guard  guard
}

// New makes a Fetcher from a Config without zero values, see WithDefaults.
func New(config Config) *Fetcher {
	return &Fetcher{config: config, guard: guard{hosts: config.AllowHosts, networks: config.AllowNetworks, own: net.InterfaceAddrs}}
}

// client returns a new client. Each download has its own.
func (f *Fetcher) client() (*http.Client, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.config.RootCAs != nil {
		var err error
		if secure.RootCAs, err = f.config.RootCAs(); err != nil {
			return nil, fmt.Errorf("%w: certificate authority: %w", ErrFetch, err)
		}
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: f.guard.control}
	return &http.Client{
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("%w: more than %d redirects", ErrRefused, maxRedirects)
			}
			if next.URL.Host != via[0].URL.Host { // net/http removes Authorization, but no header that it does not know
				next.Header = http.Header{"User-Agent": next.Header["User-Agent"]} //nolint:gosec // this is what drops them
			}
			next.Header.Del("Referer") // contains the query of the previous URL
			return f.guard.checkURL(next.URL, via[len(via)-1].URL)
		},
		Transport: &http.Transport{
			DialContext: dialer.DialContext,
			// With a proxy, only the address of the proxy would be checked.
			Proxy:                  nil,
			TLSClientConfig:        secure,
			DisableKeepAlives:      true,
			DisableCompression:     true, // the digest is of the bytes as sent, and a small compressed body could be large
			MaxResponseHeaderBytes: maxHeader,
			ResponseHeaderTimeout:  fetchedHeader,
		},
	}, nil
}

// Answer has the headers of a response that callers need.
type Answer struct {
	ETag string
	// SHA256 is the digest that the server announces, in hexadecimal, or empty.
	SHA256 string
	// Unchanged means that the server has nothing newer than the ETag of the request.
	Unchanged bool
}

// Get passes the body of source to sink, once for each attempt: sink has to start over each time.
func (f *Fetcher) Get(ctx context.Context, source, etag string, sink func(io.Reader) error) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, f.config.Timeout)
	defer cancel()
	client, err := f.client()
	if err != nil {
		return Answer{}, err
	}
	backoff := wait.Backoff{First: firstBackoff, Last: f.config.Timeout}
	for attempt := 1; ; attempt++ {
		got, err := f.once(ctx, client, source, etag, sink)
		if err == nil || ctx.Err() != nil || attempt == f.config.Attempts || !errors.As(err, new(*transientError)) {
			return got, err
		}
		pause := backoff.Next()
		if wait.For(ctx, pause+rand.N(pause)) != nil { //nolint:gosec // spreads load, keeps no secret
			return got, err
		}
	}
}

// transientError wraps errors after which another attempt may succeed.
type transientError struct{ error }

func (p *transientError) Unwrap() error { return p.error }

func (f *Fetcher) once(ctx context.Context, client *http.Client, source, etag string, sink func(io.Reader) error) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, source, http.NoBody)
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", payload.ErrInvalid, bare(err))
	}
	if err := f.guard.checkURL(req.URL, nil); err != nil {
		return Answer{}, err
	}
	if err := f.setHeader(ctx, req, etag); err != nil {
		return Answer{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return Answer{}, markTransient(err)
	}
	defer resp.Body.Close()
	switch {
	case etag != "" && resp.StatusCode == http.StatusNotModified:
		return Answer{ETag: etag, Unchanged: true}, nil
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout:
		return Answer{}, &transientError{fmt.Errorf("%w: status %d", ErrFetch, resp.StatusCode)}
	case resp.StatusCode != http.StatusOK:
		return Answer{}, fmt.Errorf("%w: status %d, want 200", ErrFetch, resp.StatusCode)
	case resp.Header.Get("Content-Encoding") != "":
		return Answer{}, fmt.Errorf("%w: content encoding %q was not asked for", ErrFetch, resp.Header.Get("Content-Encoding"))
	case resp.ContentLength > f.config.MaxBytes:
		return Answer{}, fmt.Errorf("%w: %d bytes announced, limit %d", payload.ErrTooLarge, resp.ContentLength, f.config.MaxBytes)
	}
	sum, err := announced(resp.Header)
	if err != nil {
		return Answer{}, err
	}
	body := &network{from: payload.LimitReader(resp.Body, f.config.MaxBytes, f.config.MaxBytes)}
	return Answer{ETag: resp.Header.Get("ETag"), SHA256: sum}, sink(body)
}

func (f *Fetcher) setHeader(ctx context.Context, req *http.Request, etag string) error {
	if f.config.Header != nil {
		header, err := f.config.Header(ctx)
		if err != nil {
			return fmt.Errorf("%w: header: %w", ErrFetch, err)
		}
		maps.Copy(req.Header, header)
		req.Host = req.Header.Get("Host")
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "refit-sidecar")
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	return nil
}

// announced returns the SHA-256 in Repr-Digest or Content-Digest (RFC 9530), which are the same for a body without content
// encoding, or in Digest (RFC 3230). Other algorithms are ignored.
func announced(header http.Header) (string, error) {
	for _, name := range []string{"Repr-Digest", "Content-Digest", "Digest"} {
		for member := range strings.SplitSeq(strings.Join(header.Values(name), ","), ",") {
			algorithm, value, _ := strings.Cut(strings.TrimSpace(member), "=")
			if !strings.EqualFold(algorithm, "sha-256") {
				continue
			}
			b, err := base64.StdEncoding.DecodeString(strings.Trim(value, ":"))
			if err != nil || len(b) != sha256.Size {
				return "", fmt.Errorf("%w: header %s: not a SHA-256 in base64", ErrFetch, name)
			}
			return hex.EncodeToString(b), nil
		}
	}
	return "", nil
}

// network marks errors of the connection as transient. Errors of the disk are not marked.
type network struct{ from io.Reader }

func (n *network) Read(b []byte) (int, error) {
	got, err := n.from.Read(b)
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, payload.ErrTooLarge) {
		return got, err
	}
	return got, &transientError{fmt.Errorf("%w: read body: %w", ErrFetch, err)}
}

// markTransient marks errors of the client as transient, except refusals.
func markTransient(err error) error {
	var cert *tls.CertificateVerificationError
	switch {
	case errors.Is(err, ErrRefused):
		return bare(err)
	case errors.As(err, &cert):
		return fmt.Errorf("%w: %w", ErrFetch, bare(err))
	}
	return &transientError{fmt.Errorf("%w: %w", ErrFetch, bare(err))}
}

// bare removes the URL that net/http puts before an error, because it may contain a password or a signature.
func bare(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
