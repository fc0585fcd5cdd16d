package node_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/image/credentialprovider"
)

func secret(kind corev1.SecretType, text string) *corev1.Secret {
	key := corev1.DockerConfigJsonKey
	if kind == corev1.SecretTypeDockercfg {
		key = corev1.DockerConfigKey
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretNamespace, Name: "s"}, Type: kind, Data: map[string][]byte{key: []byte(text)}}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	const u = `{"username":"u","password":"p"}`
	for name, test := range map[string]struct {
		secret *corev1.Secret
		image  string
		users  string // in the order they are tried
		says   string
	}{
		"host":                {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test":`+u+`}}`), "reg.test/a", "u", ""},
		"old form":            {secret(corev1.SecretTypeDockercfg, `{"https://reg.test/v1/":`+u+`}`), "reg.test/a", "u", ""},
		"docker hub":          {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"https://index.docker.io/v1/":`+u+`}}`), "a", "u", ""},
		"auth":                {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test":{"auth":"`+base64.StdEncoding.EncodeToString([]byte("me:a:b"))+`"}}}`), "reg.test/a", "me", ""},
		"wildcard":            {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"*.test":`+u+`}}`), "reg.test/a", "u", ""},
		"longest first":       {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test":`+u+`,"reg.test/team":{"username":"team","password":"p"},"reg.test/other":{"username":"x","password":"p"}}}`), "reg.test/team/a", "team,u", ""},
		"another registry":    {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"other.test":`+u+`}}`), "reg.test/a", "", ""},
		"suffix of a host":    {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"test":`+u+`,"g.test":`+u+`}}`), "reg.test/a", "", ""},
		"prefix of a path":    {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test/te":`+u+`}}`), "reg.test/team", "", ""},
		"malformed":           {secret(corev1.SecretTypeDockerConfigJson, `{"auths":"hunter2`), "reg.test/a", "", "malformed JSON"},
		"another type":        {secret(corev1.SecretTypeOpaque, `{}`), "reg.test/a", "", "is not a type of pull secrets"},
		"missing":             {nil, "reg.test/a", "", `secrets "s" not found`},
		"nothing in it":       {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test":{}}}`), "reg.test/a", "", ""},
		"old form, malformed": {secret(corev1.SecretTypeDockercfg, `{"hunter2`), "reg.test/a", "", "read .dockercfg: malformed JSON"},
		"a port":              {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test:5000":`+u+`}}`), "reg.test:5000/a", "u", ""},
		"another port":        {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test:5001":`+u+`}}`), "reg.test:5000/a", "", ""},
		"docker hub's host":   {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"registry-1.docker.io":`+u+`}}`), "a", "u", ""},
		"version and path":    {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"http://reg.test/v2/team/":`+u+`}}`), "reg.test/team/a", "u", ""},
		"version of a path":   {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test/v2":`+u+`}}`), "reg.test/team/a", "u", ""},
		"no version":          {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test/v2x":`+u+`}}`), "reg.test/team/a", "", ""},
		"the path itself":     {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test/team/a":`+u+`}}`), "reg.test/team/a", "u", ""},
		"part of a label":     {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"r*.test":`+u+`}}`), "reg.test/a", "u", ""},
		"a pattern of none":   {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"[.test":`+u+`}}`), "reg.test/a", "", ""},
		"the same twice":      {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test":`+u+`,"*.test":`+u+`}}`), "reg.test/a", "u", ""},
		"as many, by host":    {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test":{"username":"second","password":"p"},"*.test":{"username":"first","password":"p"}}}`), "reg.test/a", "first,second", ""},
		"auth and a newline":  {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test":{"auth":" `+base64.StdEncoding.EncodeToString([]byte("me:a\n"))+` "}}}`), "reg.test/a", "me", ""},
		"auth comes first":    {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test":{"username":"old","auth":"`+base64.StdEncoding.EncodeToString([]byte("me:a"))+`"}}}`), "reg.test/a", "me", ""},
		"auth of no user":     {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test":{"username":"u","auth":"`+base64.StdEncoding.EncodeToString([]byte("me"))+`"}}}`), "reg.test/a", "u", ""},
		"auth of no base64":   {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test":{"auth":"%%"}}}`), "reg.test/a", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				if test.secret != nil {
					w.secrets[secretNamespace+"/s"] = test.secret
				}
				w.pull = func(_ context.Context, r cri.PullRequest) (string, error) {
					return "", fmt.Errorf("pull %s: %w: 401", r.Image, cri.ErrUnauthorized)
				}
				w.want(1, test.image+":v1")
				w.run()
				w.after(900 * time.Millisecond)
				var users []string
				for _, p := range w.pulls {
					if p.Auth.Username != "" {
						users = append(users, p.Auth.Username)
					}
				}
				if got := strings.Join(users, ","); got != test.users || (test.users == "" && len(w.pulls) != 1) {
					t.Errorf("users %q, want %q (%d pulls)", got, test.users, len(w.pulls))
				}
				if message := w.message(test.image); !strings.Contains(message, test.says) || !strings.Contains(message, "401") || strings.Contains(message, "hunter2") {
					t.Errorf("message %q", message)
				}
			})
		})
	}
}

// A NodeImage is written by whoever may: it names Secrets, and must not make the daemon read any.
func TestSecretsOfOtherNamespacesAreNotRead(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pull = func(_ context.Context, r cri.PullRequest) (string, error) {
			return "", fmt.Errorf("pull %s: %w", r.Image, cri.ErrUnauthorized)
		}
		foreign := secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test":{"username":"u","password":"p"}}}`)
		w.secrets["kube-system/s"] = foreign
		w.want(1, "reg.test/a:v1")
		spec := w.object.Spec.Images["reg.test/a"]
		spec.PullSecrets[0].Namespace = "kube-system"
		w.run()
		w.after(900 * time.Millisecond)
		if len(w.pulls) != 1 || w.pulls[0].Auth.Username != "" || !strings.Contains(w.message("reg.test/a"), "kube-system/s is not in namespace kruise-daemon-config") {
			t.Errorf("%+v, %q", w.pulls, w.message("reg.test/a"))
		}
	})
}

// A registry may hide a repository from users who may not read it. Their credentials are not the only ones that match.
func TestCredentialsAreTriedAlthoughARegistryHidesTheImage(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.secrets[secretNamespace+"/s"] = secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test/team":{"username":"narrow","password":"p"},"reg.test":{"username":"wide","password":"p"}}}`)
		w.pull = func(_ context.Context, r cri.PullRequest) (string, error) {
			if r.Auth.Username == "wide" {
				return "sha256:id", nil
			}
			return "", fmt.Errorf("pull %s: %w: 404", r.Image, cri.ErrNotFound)
		}
		w.want(1, "reg.test/team/a:v1")
		w.run()
		w.after(900 * time.Millisecond)
		var users []string
		for _, p := range w.pulls {
			users = append(users, p.Auth.Username)
		}
		if !slices.Equal(users, []string{"narrow", "wide"}) {
			t.Errorf("tried %q, message %q", users, w.message("reg.test/team/a"))
		}
	})
}

func TestPluginsAreAskedAfterThePullSecrets(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.secrets[secretNamespace+"/s"] = secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test":{"username":"secret","password":"p"}}}`)
		w.logins = []credentialprovider.Login{{Match: "reg.test", Username: "host"}, {Match: "other.test", Username: "other"}, {Match: "reg.test/team", Username: "team"}}
		w.loginErr = errors.New("credential provider x: no network")
		w.pull = func(_ context.Context, r cri.PullRequest) (string, error) {
			if r.Auth.Username == "host" {
				return "sha256:id", nil
			}
			return "", fmt.Errorf("pull %s: %w: 401", r.Image, cri.ErrUnauthorized)
		}
		w.want(1, "reg.test/team/a:v1")
		w.run()
		w.after(900 * time.Millisecond)
		var users []string
		for _, p := range w.pulls {
			users = append(users, p.Auth.Username)
		}
		if !slices.Equal(users, []string{"secret", "team", "host"}) || w.asked[0] != "reg.test/team/a" {
			t.Errorf("tried %q, asked about %q", users, w.asked)
		}
		if w.object.Status.ImageStatuses["reg.test/team/a"].Tags[0].Namespaces[0].WithSecret {
			t.Error("what a plugin has pulled counts as pulled with a secret of the namespace")
		}
	})
}

func TestFailureOfAPluginIsReportedIfThePullFails(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.loginErr = errors.New("credential provider x: no network")
		w.pull = func(_ context.Context, r cri.PullRequest) (string, error) {
			return "", fmt.Errorf("pull %s: %w: 401", r.Image, cri.ErrUnauthorized)
		}
		w.want(1, "reg.test/a:v1")
		w.run()
		w.after(900 * time.Millisecond)
		if message := w.message("reg.test/a"); !strings.Contains(message, "credential provider x: no network") || !strings.Contains(message, "401") {
			t.Errorf("message %q", message)
		}
	})
}

// Tokens are credentials without a user, and reach the runtime as they are.
func TestTokensOfAPullSecretReachTheRuntime(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.secrets[secretNamespace+"/s"] = secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test":{"identitytoken":"i"},"reg.test/a":{"registrytoken":"r"},"reg.test/b":{"username":"u","password":"p"}}}`)
		w.pull = func(_ context.Context, r cri.PullRequest) (string, error) {
			return "", fmt.Errorf("pull %s: %w: 401", r.Image, cri.ErrUnauthorized)
		}
		w.want(1, "reg.test/a:v1", "reg.test/b:v1")
		w.run()
		w.after(900 * time.Millisecond)
		var got []cri.Auth
		for _, p := range w.pulls {
			got = append(got, p.Auth)
		}
		for _, want := range []cri.Auth{{RegistryToken: "r"}, {IdentityToken: "i"}, {Username: "u", Password: "p"}} {
			if !slices.Contains(got, want) {
				t.Errorf("%+v were tried, without %+v", got, want)
			}
		}
	})
}

// Another reason than the credentials would be the same with each of them.
func TestOnlyRefusedCredentialsAreFollowedByOthers(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.secrets[secretNamespace+"/s"] = secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test":{"username":"u"},"*.test":{"username":"v"}}}`)
		w.pull = func(_ context.Context, r cri.PullRequest) (string, error) {
			return "", fmt.Errorf("pull %s: %w: 429", r.Image, cri.ErrTooManyRequests)
		}
		w.want(1, "reg.test/a:v1")
		w.run()
		w.after(900 * time.Millisecond)
		if got := w.message("reg.test/a"); len(w.pulls) != 1 || !strings.HasSuffix(got, "; the next attempt is in 15s") {
			t.Errorf("%d pulls, message %q", len(w.pulls), got)
		}
	})
}
