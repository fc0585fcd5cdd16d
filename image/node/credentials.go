package node

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/credentialprovider"
	"github.com/refit-project/refit/internal/foreign"
)

// maxCredentials limits the credentials from secrets that are tried for one pull.
const maxCredentials = 64

// credentials returns the credentials for an image: first the credentials in its pull secrets whose registry and path
// match, the longest path first. It only uses copies of Secrets of the namespace for which the image is pulled.
// Credentials from plugins follow; secrets is the number of credentials before them. It also returns errors of reads,
// which matter only if the pull fails.
func (p puller) credentials(ctx context.Context, want image.Want, name image.Location) (auths []cri.Auth, secrets int, errs []error) {
	var found []credential
	for _, reference := range want.Secrets {
		if reference.Namespace != p.config.SecretNamespace {
			errs = append(errs, fmt.Errorf("pull secret %s/%s is not in namespace %s, from which the daemon reads", reference.Namespace, reference.Name, p.config.SecretNamespace))
			continue
		}
		secret, err := p.config.Secrets.Secret(ctx, reference.Namespace, reference.Name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if source, _, copied := strings.Cut(secret.Annotations[v1beta1.AnnotationPullSecretSource], "/"); copied && source != want.Namespace {
			continue
		}
		list, err := parseSecret(secret)
		if err != nil {
			errs = append(errs, fmt.Errorf("pull secret %s/%s: %w", reference.Namespace, reference.Name, err))
		}
		found = append(found, slices.DeleteFunc(list, func(c credential) bool { return !c.matches(name) })...)
	}
	slices.SortStableFunc(found, func(a, b credential) int { return cmp.Compare(len(b.path), len(a.path)) })
	for _, c := range found {
		auths = append(auths, c.auth)
	}
	auths = slices.Compact(auths)
	if n := len(auths); n > maxCredentials {
		auths = auths[:maxCredentials]
		errs = append(errs, fmt.Errorf("%d credentials of pull secrets match, of which %d are tried", n, maxCredentials))
	}
	given, err := p.fromPlugins(ctx, name)
	if err != nil {
		errs = append(errs, err)
	}
	return slices.Concat(auths, given), len(auths), errs
}

// fromPlugins returns the credentials for an image from plugins, the longest pattern first.
func (p puller) fromPlugins(ctx context.Context, name image.Location) ([]cri.Auth, error) {
	if p.config.Plugins == nil {
		return nil, nil
	}
	full := name.Registry + "/" + name.Path
	logins, err := p.config.Plugins.Logins(ctx, full)
	logins = slices.DeleteFunc(logins, func(login credentialprovider.Login) bool { return !credentialprovider.Matches(login.Match, full) })
	slices.SortFunc(logins, func(a, b credentialprovider.Login) int {
		return cmp.Or(cmp.Compare(len(b.Match), len(a.Match)), cmp.Compare(a.Match, b.Match))
	})
	auths := make([]cri.Auth, len(logins))
	for i, login := range logins {
		auths[i] = cri.Auth{Username: login.Username, Password: login.Password}
	}
	return auths, err
}

// credential is one entry of a docker configuration file.
type credential struct {
	host, path string // a label of the host, or a part of it, may be *
	auth       cri.Auth
}

// parseSecret reads a Secret of type kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg. It skips malformed
// entries.
func parseSecret(secret *corev1.Secret) ([]credential, error) {
	var entries map[string]entry
	switch secret.Type {
	case corev1.SecretTypeDockerConfigJson:
		var file struct {
			Auths map[string]entry `json:"auths"`
		}
		if err := foreign.Object(secret.Data[corev1.DockerConfigJsonKey], &file); err != nil {
			return nil, fmt.Errorf("read %s: malformed JSON", corev1.DockerConfigJsonKey) // err would quote the Secret
		}
		entries = file.Auths
	case corev1.SecretTypeDockercfg:
		if err := foreign.Object(secret.Data[corev1.DockerConfigKey], &entries); err != nil {
			return nil, fmt.Errorf("read %s: malformed JSON", corev1.DockerConfigKey)
		}
	default:
		return nil, fmt.Errorf("type %q is not a type of pull secrets", foreign.Shorten(string(secret.Type), 64))
	}
	var list []credential
	for registry, e := range entries {
		host, path := splitRegistry(registry)
		if auth, ok := e.credentials(); ok {
			list = append(list, credential{host: host, path: path, auth: auth})
		}
	}
	slices.SortFunc(list, func(a, b credential) int { return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.path, b.path)) })
	return list, nil
}

// entry is an entry as docker login writes it.
type entry struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

func (e entry) credentials() (cri.Auth, bool) {
	if e.Auth != "" {
		decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(e.Auth))
		if err == nil {
			if user, password, ok := strings.Cut(strings.TrimRight(string(decoded), "\x00\n"), ":"); ok {
				e.Username, e.Password = user, password
			}
		}
	}
	auth := cri.Auth{Username: e.Username, Password: e.Password, IdentityToken: e.IdentityToken, RegistryToken: e.RegistryToken}
	return auth, auth != cri.Auth{}
}

// splitRegistry splits a key of a docker configuration file, for example "https://index.docker.io/v1/" or
// "reg.test:5000/team".
func splitRegistry(key string) (host, path string) {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	host, path, _ = strings.Cut(key, "/")
	path = strings.Trim(path, "/")
	for _, version := range []string{"v1", "v2"} {
		if path == version || strings.HasPrefix(path, version+"/") {
			path = strings.Trim(path[len(version):], "/")
		}
	}
	if host == "index.docker.io" || host == "registry-1.docker.io" {
		host = "docker.io"
	}
	return host, path
}

// matches follows kubelet's rule: each label of the host may contain *, and the path must be a prefix of the
// repository's path.
func (c credential) matches(name image.Location) bool {
	wanted, given := strings.Split(c.host, "."), strings.Split(name.Registry, ".")
	if len(wanted) != len(given) {
		return false
	}
	for i := range wanted {
		if ok, err := path.Match(wanted[i], given[i]); !ok || err != nil {
			return false
		}
	}
	return c.path == "" || name.Path == c.path || strings.HasPrefix(name.Path, c.path+"/")
}
