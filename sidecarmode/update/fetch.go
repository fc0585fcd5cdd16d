package update

import (
	"crypto"
	"errors"
	"fmt"
	"net/netip"
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
	made := fetch.Config{Timeout: seconds(f.TimeoutSeconds), Attempts: f.Attempts, AllowHosts: f.AllowHosts}
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
