// Package download is the configuration of how files are fetched: limits, allowed hosts and networks, headers, certificates and the
// keys of signatures.
//
// It contains: the configuration and its translation to the rooms hotupdate/fetch and hotupdate/payload. Fetching itself must stay out.
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

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/hotupdate/fetch"
	"github.com/refit-project/refit/hotupdate/payload"
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
	// HeaderFiles are files with the value of a header each, such as a mounted Secret with a token. They are read for every download.
	HeaderFiles map[string]string `yaml:"headerFiles"`
	// CAFile holds certificates in PEM that replace the system's. It is read for every download.
	CAFile string `yaml:"caFile"`
	// PublicKeys in PEM, ECDSA or Ed25519: with any, whatever a request brings must be signed by one of them.
	PublicKeys []string `yaml:"publicKeys"`
}

// Keys are those of which one must have signed what is downloaded; none: no signature is needed.
func (c Config) Keys() ([]crypto.PublicKey, error) {
	var keys []crypto.PublicKey
	var faults []error
	for i, text := range c.PublicKeys {
		key, err := payload.ParseKey(strings.TrimSpace(text) + "\n")
		if err != nil {
			faults = append(faults, fmt.Errorf("fetch.publicKeys[%d]: %w", i, err))
		}
		keys = append(keys, key)
	}
	return keys, errors.Join(faults...)
}

// Fetch is the configuration of the room hotupdate/fetch.
func (c Config) Fetch() (fetch.Config, error) {
	made := fetch.Config{RootCAs: c.rootCAs(), Timeout: time.Duration(c.TimeoutSeconds * float64(time.Second)), Attempts: c.Attempts, AllowHosts: c.AllowHosts}
	var faults []error
	if len(c.Headers)+len(c.HeaderFiles) > 0 {
		made.Header = c.header
		if len(c.AllowHosts) == 0 {
			faults = append(faults, errors.New("fetch: headers need allowHosts: they may be credentials, and a caller chooses the URL"))
		}
		for name := range c.HeaderFiles {
			if _, ok := c.Headers[name]; ok {
				faults = append(faults, fmt.Errorf("fetch: header %s is given in headers and headerFiles", name))
			}
		}
	}
	if c.MaxSize != "" {
		q, err := resource.ParseQuantity(c.MaxSize)
		if err != nil {
			faults = append(faults, fmt.Errorf("fetch.maxSize %q: %w", c.MaxSize, err))
		}
		made.MaxBytes = q.Value()
	}
	for _, n := range c.AllowNetworks {
		prefix, err := netip.ParsePrefix(n)
		if err != nil {
			faults = append(faults, fmt.Errorf("fetch.allowNetworks: %w", err))
		}
		made.AllowNetworks = append(made.AllowNetworks, prefix)
	}
	return made, errors.Join(faults...)
}

// maxHeaderFile bounds the value of one header, in bytes.
const maxHeaderFile = 16 << 10

// header is what is sent with a download.
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

// rootCAs reads the configured certificates; nil is the system's.
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
