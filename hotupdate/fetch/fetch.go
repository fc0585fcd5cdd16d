package hotupdate

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
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// FetchConfig bounds downloads.
type FetchConfig struct {
	// Timeout is for one source, all attempts together; 5 minutes when zero.
	Timeout time.Duration
	// Attempts is how often a source is asked that fails in a way that may pass; 3 when zero.
	Attempts int
	// MaxBytes is for one source; 256 MiB when zero.
	MaxBytes int64
	// AllowHosts are names, "*.example.org" included; empty allows all.
	AllowHosts []string
	// AllowNetworks are where the resolved address must be; empty allows all but loopback. Link-local and
	// metadata addresses are refused in any case.
	AllowNetworks []netip.Prefix
	// RootCAs replaces the system's.
	RootCAs *x509.CertPool
}

const (
	maxRedirects  = 5
	maxHeader     = 64 << 10
	firstBackoff  = 200 * time.Millisecond
	fetchedHeader = 30 * time.Second // from the request's end to the answer's header
)

func (c FetchConfig) withDefaults() FetchConfig {
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

type fetcher struct {
	config FetchConfig
	guard  guard
	client http.Client
}

func newFetcher(config FetchConfig) *fetcher {
	f := &fetcher{config: config, guard: guard{hosts: config.AllowHosts, networks: config.AllowNetworks}}
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: f.guard.control}
	f.client = http.Client{
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("%w: more than %d redirects", ErrRefused, maxRedirects)
			}
			return f.guard.checkURL(next.URL, via[len(via)-1].URL)
		},
		Transport: &http.Transport{
			DialContext: dialer.DialContext,
			// A proxy would be the address that is checked.
			Proxy:                  nil,
			TLSClientConfig:        &tls.Config{RootCAs: config.RootCAs, MinVersion: tls.VersionTLS12},
			DisableKeepAlives:      true,
			DisableCompression:     true, // a digest is of what was sent, and a small body could be a large one
			MaxResponseHeaderBytes: maxHeader,
			ResponseHeaderTimeout:  fetchedHeader,
		},
	}
	return f
}

// answer is what came beside the body.
type answer struct {
	etag string
	// sha256 is what the server says that the body has, in hexadecimal, or empty.
	sha256 string
	// same says that the server has nothing newer than the ETag it was asked with.
	same bool
}

// get hands the body of source to sink, once for each attempt: sink starts over every time.
func (f *fetcher) get(ctx context.Context, source, etag string, sink func(io.Reader) error) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, f.config.Timeout)
	defer cancel()
	wait := firstBackoff
	for attempt := 1; ; attempt++ {
		got, err := f.once(ctx, source, etag, sink)
		if err == nil || ctx.Err() != nil || attempt == f.config.Attempts || !errors.As(err, new(*passing)) {
			return got, err
		}
		select {
		case <-ctx.Done():
			return got, err
		case <-time.After(wait + rand.N(wait)): //nolint:gosec // spreads load, keeps no secret
		}
		wait *= 2
	}
}

// passing wraps what another attempt may cure.
type passing struct{ error }

func (p *passing) Unwrap() error { return p.error }

func (f *fetcher) once(ctx context.Context, source, etag string, sink func(io.Reader) error) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, source, http.NoBody)
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", ErrInvalid, bare(err))
	}
	if err := f.guard.checkURL(req.URL, nil); err != nil {
		return answer{}, err
	}
	req.Header.Set("User-Agent", "refit-sidecar")
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return answer{}, fault(err)
	}
	defer resp.Body.Close()
	switch {
	case etag != "" && resp.StatusCode == http.StatusNotModified:
		return answer{etag: etag, same: true}, nil
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout:
		return answer{}, &passing{fmt.Errorf("%w: status %d", ErrFetch, resp.StatusCode)}
	case resp.StatusCode != http.StatusOK:
		return answer{}, fmt.Errorf("%w: status %d, want 200", ErrFetch, resp.StatusCode)
	case resp.Header.Get("Content-Encoding") != "":
		return answer{}, fmt.Errorf("%w: content encoding %q was not asked for", ErrFetch, resp.Header.Get("Content-Encoding"))
	case resp.ContentLength > f.config.MaxBytes:
		return answer{}, fmt.Errorf("%w: %d bytes announced, limit %d", ErrTooLarge, resp.ContentLength, f.config.MaxBytes)
	}
	sum, err := announced(resp.Header)
	if err != nil {
		return answer{}, err
	}
	body := &network{from: &limited{from: resp.Body, left: f.config.MaxBytes, limit: f.config.MaxBytes}}
	return answer{etag: resp.Header.Get("ETag"), sha256: sum}, sink(body)
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
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, ErrTooLarge) {
		return got, err
	}
	return got, &passing{fmt.Errorf("%w: read body: %w", ErrFetch, err)}
}

// limited fails where io.LimitReader would end quietly.
type limited struct {
	from        io.Reader
	left, limit int64
}

func (l *limited) Read(b []byte) (int, error) {
	if l.left < 0 {
		return 0, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, l.limit)
	}
	// One byte more than is left tells a body that ends here from one that goes on.
	n, err := l.from.Read(b[:min(int64(len(b)), l.left+1)])
	if l.left -= int64(n); l.left < 0 {
		return 0, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, l.limit)
	}
	return n, err
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
	return &passing{fmt.Errorf("%w: %w", ErrFetch, bare(err))}
}

// bare takes off the URL that net/http puts before an error; it may hold a password or a signature.
func bare(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
