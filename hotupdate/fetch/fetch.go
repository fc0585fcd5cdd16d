// Package fetch downloads one source over HTTP, with bounds on time, size, redirects and addresses.
//
// It contains: the HTTP client, retries, and the decision which addresses may be connected to. Where the bytes
// are written must stay out.
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
	"github.com/refit-project/refit/wait"
)

// Config bounds downloads.
type Config struct {
	// Timeout is for one source, all attempts together; 5 minutes when zero.
	Timeout time.Duration
	// Attempts is how often a source is asked that fails in a way that may pass; 3 when zero.
	Attempts int
	// MaxBytes is for one source; 256 MiB when zero.
	MaxBytes int64
	// AllowHosts are names, "*.example.org" included; empty allows all.
	AllowHosts []string
	// AllowNetworks are where the resolved address must be; empty allows all but loopback. The pod's own
	// addresses are allowed where loopback is. Link-local and
	// metadata addresses are refused in any case.
	AllowNetworks []netip.Prefix
	// RootCAs replaces the system's. It is called for every download, since the file may be renewed; nil is the
	// system's.
	RootCAs func() (*x509.CertPool, error)
	// Header is sent with the request for a source, and not along with redirects to other hosts. It is called for every
	// request, since credentials may be renewed; nil sends none.
	Header func(ctx context.Context) (http.Header, error)
}

var (
	// ErrRefused means that the address, host or scheme is not allowed.
	ErrRefused = errors.New("source refused")
	// ErrFetch means that the server did not deliver.
	ErrFetch = errors.New("fetch")
)

const (
	maxRedirects  = 5
	maxHeader     = 64 << 10
	firstBackoff  = 200 * time.Millisecond
	fetchedHeader = 30 * time.Second // from the request's end to the Answer's header
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

// Fetcher downloads; it may be used by many goroutines.
type Fetcher struct {
	config Config
	guard  guard
}

// New makes a Fetcher from a Config without zero values, see WithDefaults.
func New(config Config) *Fetcher {
	return &Fetcher{config: config, guard: guard{hosts: config.AllowHosts, networks: config.AllowNetworks, own: net.InterfaceAddrs}}
}

// client is made for each download.
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
			if next.URL.Host != via[0].URL.Host { // net/http drops Authorization, but no header that it does not know
				next.Header = http.Header{"User-Agent": next.Header["User-Agent"]} //nolint:gosec // this is what drops them
			}
			next.Header.Del("Referer") // holds the query of the URL before
			return f.guard.checkURL(next.URL, via[len(via)-1].URL)
		},
		Transport: &http.Transport{
			DialContext: dialer.DialContext,
			// A proxy would be the address that is checked.
			Proxy:                  nil,
			TLSClientConfig:        secure,
			DisableKeepAlives:      true,
			DisableCompression:     true, // a digest is of what was sent, and a small body could be a large one
			MaxResponseHeaderBytes: maxHeader,
			ResponseHeaderTimeout:  fetchedHeader,
		},
	}, nil
}

// Answer is what came beside the body.
type Answer struct {
	ETag string
	// SHA256 is what the server says that the body has, in hexadecimal, or empty.
	SHA256 string
	// Unchanged says that the server has nothing newer than the ETag it was asked with.
	Unchanged bool
}

// Get hands the body of source to sink, once for each attempt: sink starts over every time.
func (f *Fetcher) Get(ctx context.Context, source, etag string, sink func(io.Reader) error) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, f.config.Timeout)
	defer cancel()
	client, err := f.client()
	if err != nil {
		return Answer{}, err
	}
	backoff := firstBackoff
	for attempt := 1; ; attempt++ {
		got, err := f.once(ctx, client, source, etag, sink)
		if err == nil || ctx.Err() != nil || attempt == f.config.Attempts || !errors.As(err, new(*transientError)) {
			return got, err
		}
		if wait.For(ctx, backoff+rand.N(backoff)) != nil { //nolint:gosec // spreads load, keeps no secret
			return got, err
		}
		backoff *= 2
	}
}

// transientError wraps errors that another attempt may not meet.
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
		return Answer{}, fault(err)
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

// announced is the SHA-256 in Repr-Digest or Content-Digest (RFC 9530), which are the same for a body without content
// encoding, or in Digest (RFC 3230). Other algorithms are passed over.
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

// network marks errors of the connection, which another attempt may cure, and leaves those of the disk alone.
type network struct{ from io.Reader }

func (n *network) Read(b []byte) (int, error) {
	got, err := n.from.Read(b)
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, payload.ErrTooLarge) {
		return got, err
	}
	return got, &transientError{fmt.Errorf("%w: read body: %w", ErrFetch, err)}
}

// fault sorts an error of the client: what was refused stays refused, the rest may pass.
func fault(err error) error {
	var cert *tls.CertificateVerificationError
	switch {
	case errors.Is(err, ErrRefused):
		return bare(err)
	case errors.As(err, &cert):
		return fmt.Errorf("%w: %w", ErrFetch, bare(err))
	}
	return &transientError{fmt.Errorf("%w: %w", ErrFetch, bare(err))}
}

// bare takes off the URL that net/http puts before an error; it may hold a password or a signature.
func bare(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
