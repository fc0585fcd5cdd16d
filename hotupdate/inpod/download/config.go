// Package download is the configuration of how files are fetched: limits, allowed hosts and networks, headers, certificates
// and public keys.
//
// It contains: the configuration and its translation for the packages hotupdate/fetch and hotupdate/payload. Fetching
// itself must stay out.
package download

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/refit-project/refit/hotupdate/fetch"
	"github.com/refit-project/refit/hotupdate/payload"
	"github.com/refit-project/refit/internal/foreign"
)

// Config bounds downloads.
type Config struct {
	TimeoutSeconds float64 `yaml:"timeoutSeconds"`
	Attempts       int     `yaml:"attempts"`
	// MaxSize is a quantity such as 256Mi.
	MaxSize       string   `yaml:"maxSize"`
	AllowHosts    []string `yaml:"allowHosts"`
	AllowNetworks []string `yaml:"allowNetworks"`
	// Headers are sent to the hosts of allowHosts.
	Headers map[string]string `yaml:"headers"`
	// HeaderFiles are files that each contain the value of a header, such as a mounted Secret with a token. They are read
	// for every download.
	HeaderFiles map[string]string `yaml:"headerFiles"`
	// CAFile holds certificates in PEM that replace the system's. It is read for every download.
	CAFile string `yaml:"caFile"`
	// PublicKeys in PEM, ECDSA or Ed25519. If there are any, all content of a request must be signed with one of them.
	PublicKeys []string `yaml:"publicKeys"`
}

// Keys returns the public keys, one of which must have signed each download. Without keys no signature is needed.
func (c Config) Keys() ([]crypto.PublicKey, error) {
	var keys []crypto.PublicKey
	var errs []error
	for i, text := range c.PublicKeys {
		key, err := payload.ParseKey(strings.TrimSpace(text) + "\n")
		if err != nil {
			errs = append(errs, fmt.Errorf("fetch.publicKeys[%d]: %w", i, err))
		}
		keys = append(keys, key)
	}
	return keys, errors.Join(errs...)
}

// Fetch returns the configuration of the package hotupdate/fetch.
func (c Config) Fetch() (fetch.Config, error) {
	made := fetch.Config{RootCAs: c.rootCAs(), Timeout: time.Duration(c.TimeoutSeconds * float64(time.Second)), Attempts: c.Attempts, AllowHosts: c.AllowHosts}
	var errs []error
	if len(c.Headers)+len(c.HeaderFiles) > 0 {
		made.Header = c.header
		if len(c.AllowHosts) == 0 {
			errs = append(errs, errors.New("fetch: headers need allowHosts: they may be credentials, and a caller chooses the URL"))
		}
		for name := range c.HeaderFiles {
			if _, ok := c.Headers[name]; ok {
				errs = append(errs, fmt.Errorf("fetch: header %s is given in headers and headerFiles", name))
			}
		}
	}
	if c.MaxSize != "" {
		q, err := foreign.Quantity(c.MaxSize)
		if err != nil {
			errs = append(errs, fmt.Errorf("fetch.maxSize: %w", err))
		}
		made.MaxBytes = q.Value()
	}
	for _, n := range c.AllowNetworks {
		prefix, err := netip.ParsePrefix(n)
		if err != nil {
			errs = append(errs, fmt.Errorf("fetch.allowNetworks: %w", err))
		}
		made.AllowNetworks = append(made.AllowNetworks, prefix)
	}
	return made, errors.Join(errs...)
}

// maxHeaderFile bounds the value of one header, in bytes.
const maxHeaderFile = 16 << 10

// header returns the headers that are sent with a download.
func (c Config) header(context.Context) (http.Header, error) {
	header := http.Header{}
	for name, value := range c.Headers {
		header.Set(name, value)
	}
	for name, path := range c.HeaderFiles {
		b, err := readBounded(path, maxHeaderFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		header.Set(name, strings.TrimSpace(string(b)))
	}
	return header, nil
}

// rootCAs returns a function that reads the configured certificates, or nil for the system's.
func (c Config) rootCAs() func() (*x509.CertPool, error) {
	if c.CAFile == "" {
		return nil
	}
	return func() (*x509.CertPool, error) {
		b, err := readBounded(c.CAFile, 1<<20)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("%s: no certificates", c.CAFile)
		}
		return pool, nil
	}
}

func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(b)) > most {
		return nil, fmt.Errorf("%s: more than %d bytes", path, most)
	}
	return b, nil
}
