package credentialprovider

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// API versions and kinds of the protocol and of the configuration file.
const (
	protocolVersion = "credentialprovider.kubelet.k8s.io/v1"
	kindRequest     = "CredentialProviderRequest"
	kindResponse    = "CredentialProviderResponse"
	kindConfig      = "CredentialProviderConfig"
	// configVersions are the versions in which the fields read here are the same.
	configVersions = "kubelet.config.k8s.io/v1 kubelet.config.k8s.io/v1beta1 kubelet.config.k8s.io/v1alpha1"
)

// maxConfig limits the configuration file, in bytes.
const maxConfig = 1 << 20

// configuration is kubelet's CredentialProviderConfig. Fields that are not listed here are ignored, because kubelet may
// be newer.
type configuration struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Providers  []provider `json:"providers"`
}

type provider struct {
	Name                 string           `json:"name"`
	MatchImages          []string         `json:"matchImages"`
	DefaultCacheDuration *metav1.Duration `json:"defaultCacheDuration"`
	APIVersion           string           `json:"apiVersion"`
	Args                 []string         `json:"args"`
	Env                  []variable       `json:"env"`
	TokenAttributes      any              `json:"tokenAttributes"`
}

type variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ErrNoConfig means that the configuration file does not exist.
var ErrNoConfig = errors.New("no configuration of credential providers")

// New reads a configuration file. folder contains its plugins. The error names the field and the rule, or is
// ErrNoConfig if the file does not exist.
func New(file, folder string) (*Plugins, error) {
	opened, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrNoConfig, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration of credential providers: %w", err)
	}
	defer opened.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(opened, maxConfig+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration of credential providers: %w", err)
	}
	config, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("configuration of credential providers %s: %w", file, err)
	}
	plugins := &Plugins{}
	for _, p := range config.Providers {
		program := filepath.Join(folder, p.Name)
		if info, err := os.Stat(program); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return nil, fmt.Errorf("configuration of credential providers %s: provider %s: %s is not a program", file, p.Name, program)
		}
		plugins.list = append(plugins.list, newPlugin(p, program))
	}
	return plugins, nil
}

func parse(text []byte) (configuration, error) {
	var config configuration
	if len(text) > maxConfig {
		return config, fmt.Errorf("more than %d bytes", maxConfig)
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return config, err
	}
	if config.Kind != kindConfig || !contains(configVersions, config.APIVersion) {
		return config, fmt.Errorf("kind %q of apiVersion %q: want %s of kubelet.config.k8s.io/v1", config.Kind, config.APIVersion, kindConfig)
	}
	seen := map[string]bool{}
	for i, p := range config.Providers {
		at := fmt.Sprintf("providers[%d]", i)
		switch {
		case p.Name == "" || p.Name != filepath.Base(p.Name) || p.Name == "." || p.Name == "..":
			return config, fmt.Errorf("%s.name %q: want the name of a file without a folder", at, p.Name)
		case seen[p.Name]:
			return config, fmt.Errorf("%s.name %q: is given twice", at, p.Name)
		case p.APIVersion != protocolVersion:
			return config, fmt.Errorf("%s.apiVersion %q: want %s", at, p.APIVersion, protocolVersion)
		case len(p.MatchImages) == 0:
			return config, fmt.Errorf("%s.matchImages: at least one is required", at)
		case p.DefaultCacheDuration == nil || p.DefaultCacheDuration.Duration < 0:
			return config, fmt.Errorf("%s.defaultCacheDuration: a duration is required, as 12h; 0s for none", at)
		case p.TokenAttributes != nil:
			return config, fmt.Errorf("%s.tokenAttributes: tokens of service accounts are not supported: an image that is pulled before it is needed has no pod", at)
		}
		seen[p.Name] = true
	}
	return config, nil
}

func contains(words, word string) bool {
	for _, w := range strings.Fields(words) {
		if w == word {
			return true
		}
	}
	return false
}

// maxCache limits how long credentials are cached, whatever a plugin says.
const maxCache = 24 * time.Hour
