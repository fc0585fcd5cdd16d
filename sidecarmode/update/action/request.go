package update

import (
	"cmp"
	"crypto"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/hotupdate"
)

// Request is an HTTP request to the program. Address and Port are the reference's way to write URL.
type Request struct {
	Address            string            `yaml:"address"`
	Port               int               `yaml:"port"`
	URL                string            `yaml:"url"`
	Method             string            `yaml:"method"`
	Headers            map[string]string `yaml:"headers"`
	Body               string            `yaml:"body"`
	ExpectedStatusCode int               `yaml:"expectedStatusCode"`
}

// Fetch bounds downloads.
type Fetch struct {
	TimeoutSeconds float64 `yaml:"timeoutSeconds"`
	Attempts       int     `yaml:"attempts"`
	// MaxSize is a quantity such as 256Mi.
	MaxSize       string   `yaml:"maxSize"`
	AllowHosts    []string `yaml:"allowHosts"`
	AllowNetworks []string `yaml:"allowNetworks"`
	// PublicKeys in PEM, ECDSA or Ed25519: with any, whatever a request brings must be signed by one of them.
	PublicKeys []string `yaml:"publicKeys"`
}

func (r *Request) call() (hotupdate.Call, error) {
	target := r.URL
	if target == "" && r.Address != "" {
		target = r.Address
		if !strings.Contains(target, "://") {
			target = "http://" + target
		}
		if r.Port != 0 {
			scheme, rest, _ := strings.Cut(target, "://")
			host, path, slash := strings.Cut(rest, "/")
			target = scheme + "://" + net.JoinHostPort(host, strconv.Itoa(r.Port))
			if slash {
				target += "/" + path
			}
		}
	}
	header := http.Header{}
	for name, value := range r.Headers {
		header.Set(name, value)
	}
	call := hotupdate.Call{
		Method: cmp.Or(r.Method, http.MethodPost), URL: target, Header: header, Body: r.Body, ExpectedStatus: r.ExpectedStatusCode,
	}
	request, err := http.NewRequest(call.Method, target, http.NoBody) //nolint:noctx // is not sent
	if err != nil || request.URL.Host == "" || !strings.HasPrefix(request.URL.Scheme, "http") {
		return call, fmt.Errorf("request: want url, or address and port, of http or https, and a method: %q", target)
	}
	return call, nil
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

func (f Fetch) config() (hotupdate.FetchConfig, error) {
	made := hotupdate.FetchConfig{Timeout: seconds(f.TimeoutSeconds), Attempts: f.Attempts, AllowHosts: f.AllowHosts}
	var faults []error
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
