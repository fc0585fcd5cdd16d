package hotupdate_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/fetch"
)

// fetch applies one file from url and returns the error.
func download(t *testing.T, url string, config fetch.Config) error {
	t.Helper()
	b := newBench(t, files{"a": "old"}, func(c *hotupdate.Config) { c.Fetch = config })
	_, err := b.Apply(t.Context(), hotupdate.Request{Version: "v1", Sources: []hotupdate.Source{{URL: url, Name: "a"}}})
	b.checkClean(t)
	if err != nil {
		b.check(t, files{"a": "old"})
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows a secret of the URL: %v", err)
		}
	}
	return err
}

// Safe download: addresses that a caller may not use, in any notation.
func TestDownloadsFromForbiddenAddressesAreRefused(t *testing.T) {
	t.Parallel()
	near := fetch.Config{Attempts: 1, Timeout: 10 * time.Second}
	private := near
	private.AllowNetworks = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	named := near
	named.AllowHosts, named.AllowNetworks = []string{"*.example.org", "config"}, loopback
	anything := near
	anything.AllowNetworks = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	tests := map[string]struct {
		url    string
		config fetch.Config
	}{
		"metadata":                     {"http://169.254.169.254/latest", near},
		"metadata, explicitly allowed": {"http://169.254.169.254/latest", anything},
		"metadata, mapped":             {"http://[::ffff:169.254.169.254]/latest", anything},
		"metadata, translated":         {"http://[64:ff9b::a9fe:a9fe]/latest", anything},
		"metadata of AWS, IPv6":        {"http://[fd00:ec2::254]/latest", anything},
		"metadata of Google, IPv6":     {"http://[fd20:ce::254]/latest", anything},
		"metadata of Alibaba":          {"http://100.100.100.200/latest", anything},
		"metadata of Azure":            {"http://168.63.129.16/latest", anything},
		"link-local, IPv6":             {"http://[fe80::1]/x", anything},
		"unspecified":                  {"http://0.0.0.0/x", anything},
		"unspecified, IPv6":            {"http://[::]/x", anything},
		"multicast":                    {"http://224.0.0.1/x", anything},
		"broadcast":                    {"http://255.255.255.255/x", anything},
		"loopback":                     {"http://127.0.0.1/x", near},
		"loopback by name":             {"http://localhost/x", near},
		"loopback, IPv6":               {"http://[::1]/x", near},
		"loopback, mapped":             {"http://[::ffff:127.0.0.1]/x", near},
		"outside of allowed networks":  {"http://192.168.1.1/x", private},
		"host not on the list":         {"http://127.0.0.1/x", named},
		"parent of a listed host":      {"http://example.org/x", named},
		"lookalike of a listed host":   {"http://badexample.org/x", named},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := download(t, tt.url, tt.config); !errors.Is(err, hotupdate.ErrRefused) {
				t.Errorf("err = %v, want ErrRefused", err)
			}
		})
	}
}

// A decimal address either resolves to the address that it stands for, and is refused, or does not resolve.
func TestDecimalAddress(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"http://2852039166/latest", "http://0x7f.1/", "http://0177.0.0.1/"} {
		if err := download(t, url, fetch.Config{Attempts: 1, Timeout: 5 * time.Second}); err == nil {
			t.Errorf("%s was fetched", url)
		}
	}
}

func TestSafeDownloadChecksRedirects(t *testing.T) {
	t.Parallel()
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
	}
	good := serve(t, text("new"))
	secure := httptest.NewTLSServer(redirect(good))
	t.Cleanup(secure.Close)
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	loop := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) })
	tests := map[string]struct {
		url  string
		want error
	}{
		"to a good address":     {serve(t, redirect(good)), nil},
		"to the metadata":       {serve(t, redirect("http://169.254.169.254/latest")), hotupdate.ErrRefused},
		"to a file":             {serve(t, redirect("file:///etc/passwd")), hotupdate.ErrRefused},
		"to an unlisted host":   {serve(t, redirect("http://localhost:1/")), hotupdate.ErrRefused},
		"in a loop":             {loop, hotupdate.ErrRefused},
		"from https to http":    {secure.URL, hotupdate.ErrRefused},
		"without a destination": {serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(302) }), hotupdate.ErrFetch},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := fetch.Config{Attempts: 1, AllowNetworks: loopback, AllowHosts: []string{"127.0.0.1"}, RootCAs: func() (*x509.CertPool, error) { return roots, nil }}
			if err := download(t, tt.url, config); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("err = %v, want %v", err, tt.want)
			}
		})
	}
}

func TestTLSIsVerified(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(text("new"))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	if err := download(t, server.URL, fetch.Config{AllowNetworks: loopback}); !errors.Is(err, hotupdate.ErrFetch) {
		t.Errorf("err = %v, want ErrFetch", err)
	}
}

// Downloads are bounded in bytes, announced or not, and in time, however slow they are.
func TestDownloadsAreBounded(t *testing.T) {
	t.Parallel()
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 8<<10)); err != nil {
				return
			}
		}
	}
	drip := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte("x"))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	bomb := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.CopyN(z, zeros{}, 10<<20)
		_ = z.Close()
	}
	tests := map[string]struct {
		handler http.HandlerFunc
		want    error
	}{
		"more than announced limit": {text(strings.Repeat("x", 70_000)), hotupdate.ErrTooLarge},
		"without end":               {endless, hotupdate.ErrTooLarge},
		"exactly the limit":         {text(strings.Repeat("x", 65_536)), nil},
		"a byte more, unannounced": {func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(make([]byte, 65_537))
		}, hotupdate.ErrTooLarge},
		"1 byte each 10 ms":  {drip, context.DeadlineExceeded},
		"a compressed bomb":  {bomb, hotupdate.ErrFetch},
		"a header of 100 KB": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("h", 100_000)) }, hotupdate.ErrFetch},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := fetch.Config{Attempts: 1, MaxBytes: 65_536, Timeout: 2 * time.Second, AllowNetworks: loopback}
			began := time.Now()
			err := download(t, serve(t, tt.handler)+"/a?sig=secret", config)
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("err = %v, want %v", err, tt.want)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// A transient error is retried from the first byte; others are not retried.
func TestSafeDownloadIsTriedAgain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		first func(w http.ResponseWriter)
		asked int
		err   error
	}{
		"503":          {func(w http.ResponseWriter) { w.WriteHeader(503) }, 2, nil},
		"429":          {func(w http.ResponseWriter) { w.WriteHeader(429) }, 2, nil},
		"body cut off": {func(w http.ResponseWriter) { w.Header().Set("Content-Length", "9"); fmt.Fprint(w, "half") }, 2, nil},
		"404":          {func(w http.ResponseWriter) { w.WriteHeader(404) }, 1, hotupdate.ErrFetch},
		"too large":    {func(w http.ResponseWriter) { fmt.Fprint(w, strings.Repeat("x", 2000)) }, 1, hotupdate.ErrTooLarge},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if asked++; asked == 1 {
					tt.first(w)
					return
				}
				fmt.Fprint(w, "whole")
			})
			b := newBench(t, nil, func(c *hotupdate.Config) { c.Fetch.MaxBytes = 1000 })
			_, err := b.Apply(t.Context(), hotupdate.Request{Version: "v1", Sources: []hotupdate.Source{{URL: url + "/a"}}})
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) || asked != tt.asked {
				t.Errorf("err = %v after %d requests, want %v after %d", err, asked, tt.err, tt.asked)
			}
			if tt.err == nil {
				b.check(t, files{"a": "whole"})
			}
		})
	}
}

// After several attempts the archive of the last one is used.
func TestRetriedArchive(t *testing.T) {
	t.Parallel()
	archive := tarGz(t, tarFile("a", "1"))
	asked := 0
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(archive)))
		if asked++; asked == 1 {
			archive := bytes.Repeat([]byte("z"), len(archive)/2)
			_, _ = w.Write(archive)
			return
		}
		_, _ = w.Write(archive)
	})
	b := newBench(t, nil, nil)
	b.apply(t, hotupdate.Request{Version: "v1", Sources: []hotupdate.Source{{URL: url, Format: hotupdate.TarGz, SHA256: sum(string(archive))}}})
	b.check(t, files{"a": "1"})
}
