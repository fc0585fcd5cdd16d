package images_test

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

	"github.com/refit-project/refit/credentialprovider"
	"github.com/refit-project/refit/cri"
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
		"host":              {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test":`+u+`}}`), "reg.test/a", "u", ""},
		"old form":          {secret(corev1.SecretTypeDockercfg, `{"https://reg.test/v1/":`+u+`}`), "reg.test/a", "u", ""},
		"docker hub":        {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"https://index.docker.io/v1/":`+u+`}}`), "a", "u", ""},
		"auth":              {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test":{"auth":"`+base64.StdEncoding.EncodeToString([]byte("me:a:b"))+`"}}}`), "reg.test/a", "me", ""},
		"wildcard":          {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"*.test":`+u+`}}`), "reg.test/a", "u", ""},
		"longest first":     {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test":`+u+`,"reg.test/team":{"username":"team","password":"p"},"reg.test/other":{"username":"x","password":"p"}}}`), "reg.test/team/a", "team,u", ""},
		"another registry":  {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"other.test":`+u+`}}`), "reg.test/a", "", ""},
		"suffix of a host":  {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"test":`+u+`,"g.test":`+u+`}}`), "reg.test/a", "", ""},
		"prefix of a path":  {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test/te":`+u+`}}`), "reg.test/team", "", ""},
		"malformed":         {secret(corev1.SecretTypeDockerConfigJson, `{"auths":"hunter2`), "reg.test/a", "", "malformed JSON"},
		"another type":      {secret(corev1.SecretTypeOpaque, `{}`), "reg.test/a", "", "is not that of a pull secret"},
		"missing":           {nil, "reg.test/a", "", `secrets "s" not found`},
		"nothing in it":     {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test":{}}}`), "reg.test/a", "", ""},
		"auth of no base64": {secret(corev1.SecretTypeDockerConfigJson, `{"auths":{"reg.test":{"auth":"%%"}}}`), "reg.test/a", "", ""},
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
				w.after(500 * time.Millisecond)
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
		w.after(500 * time.Millisecond)
		if len(w.pulls) != 1 || w.pulls[0].Auth.Username != "" || !strings.Contains(w.message("reg.test/a"), "kube-system/s is not in namespace kruise-daemon-config") {
			t.Errorf("%+v, %q", w.pulls, w.message("reg.test/a"))
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
		w.after(500 * time.Millisecond)
		var users []string
		for _, p := range w.pulls {
			users = append(users, p.Auth.Username)
		}
		if !slices.Equal(users, []string{"secret", "team", "host"}) || w.asked[0] != "reg.test/team/a" {
			t.Errorf("tried %q, asked about %q", users, w.asked)
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
		w.after(500 * time.Millisecond)
		if message := w.message("reg.test/a"); !strings.Contains(message, "credential provider x: no network") || !strings.Contains(message, "401") {
			t.Errorf("message %q", message)
		}
	})
}
