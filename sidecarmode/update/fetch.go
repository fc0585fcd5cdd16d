package update

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

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/fetch"
)

// Fetch bounds downloads.
type Fetch struct {
	TimeoutSeconds float64 `yaml:"timeoutSeconds"`
	Attempts       int     `yaml:"attempts"`
	// MaxSize is a quantity such as 256Mi.
	MaxSize       string   `yaml:"maxSize"`
	AllowHosts    []string `yaml:"allowHosts"`
	AllowNetworks []string `yaml:"allowNetworks"`
	// Headers are sent to the hosts of allowHosts, and HeaderFiles name files with a value each, such as a mounted
	// Secret with a token. They are read for every download.
	Headers     map[string]string `yaml:"headers"`
	HeaderFiles map[string]string `yaml:"headerFiles"`
	// CAFile holds certificates in PEM that replace the system's. It is read for every download.
	CAFile string `yaml:"caFile"`
	// PublicKeys in PEM, ECDSA or Ed25519: with any, whatever a request brings must be signed by one of them.
	PublicKeys []string `yaml:"publicKeys"`
}

func (f Fetch) keys() ([]crypto.PublicKey, error) {
	var keys []crypto.PublicKey
	var faults []error
	for i, text := range f.PublicKeys {
		key, err := hotupdate.ParseKey(strings.TrimSpace(text) + "\n")
		if err != nil {
			faults = append(faults, fmt.Errorf("fetch.publicKeys[%d]: %w", i, err))
		}
		keys = append(keys, key)
	}
	return keys, errors.Join(faults...)
}

func (f Fetch) config() (fetch.Config, error) {
	made := fetch.Config{RootCAs: f.rootCAs(), Timeout: seconds(f.TimeoutSeconds), Attempts: f.Attempts, AllowHosts: f.AllowHosts}
	var faults []error
	if len(f.Headers)+len(f.HeaderFiles) > 0 {
		made.Header = f.header
		if len(f.AllowHosts) == 0 {
			faults = append(faults, errors.New("fetch: headers need allowHosts: they may be credentials, and a caller chooses the URL"))
		}
		for name := range f.HeaderFiles {
			if _, ok := f.Headers[name]; ok {
				faults = append(faults, fmt.Errorf("fetch: header %s is given in headers and headerFiles", name))
			}
		}
	}
	if f.MaxSize != "" {
		q, err := resource.ParseQuantity(f.MaxSize)
		if err != nil {
			faults = append(faults, fmt.Errorf("fetch.maxSize %q: %w", f.MaxSize, err))
		}
		made.MaxBytes = q.Value()
	}
	for _, n := range f.AllowNetworks {
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
func (f Fetch) header(context.Context) (http.Header, error) {
	header := http.Header{}
	for name, value := range f.Headers {
		header.Set(name, value)
	}
	for name, path := range f.HeaderFiles {
		b, err := readBounded(path, maxHeaderFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		header.Set(name, strings.TrimSpace(string(b)))
	}
	return header, nil
}

// rootCAs reads the configured certificates; nil is the system's.
func (f Fetch) rootCAs() func() (*x509.CertPool, error) {
	if f.CAFile == "" {
		return nil
	}
	return func() (*x509.CertPool, error) {
		b, err := readBounded(f.CAFile, 1<<20)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("%s: no certificates", f.CAFile)
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
