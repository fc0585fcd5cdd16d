package node_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
)

// private has a registry give the image app:v1 to the user shop only. The node has it as soon as it has been pulled.
func (w *world) private() {
	for _, namespace := range []string{"shop", "mallory"} {
		w.secrets[secretNamespace+"/of-"+namespace] = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: secretNamespace, Name: "of-" + namespace, Annotations: map[string]string{v1beta1.AnnotationPullSecretSource: namespace + "/registry"},
			},
			Type: corev1.SecretTypeDockerConfigJson,
			Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"reg.test":{"username":"` + namespace + `","password":"p"}}}`)},
		}
	}
	w.pull = func(_ context.Context, r cri.PullRequest) (string, error) {
		if r.Auth.Username != "shop" {
			return "", fmt.Errorf("pull %s: %w: 401", r.Image, cri.ErrUnauthorized)
		}
		w.mu.Lock()
		w.onNode[r.Image] = "sha256:id"
		w.mu.Unlock()
		return "sha256:id", nil
	}
}

// tenants are jobs for one image, each with what the NodeImage says of its namespace.
func (w *world) tenants(shared []string, listed ...v1beta1.ImageNamespaceSpec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.object = w.object.DeepCopy()
	tag := v1beta1.ImageTagSpec{Tag: "v1", Namespaces: listed, PullPolicy: &v1beta1.ImageTagPullPolicy{BackoffLimit: new(int32(0))}}
	for _, namespace := range []string{"mallory", "shop"} {
		tag.OwnerReferences = append(tag.OwnerReferences, corev1.ObjectReference{Namespace: namespace, Name: "job"})
	}
	spec := v1beta1.ImageSpec{Tags: []v1beta1.ImageTagSpec{tag}}
	for _, name := range shared {
		spec.PullSecrets = append(spec.PullSecrets, v1beta1.ReferenceObject{Namespace: secretNamespace, Name: name})
	}
	w.object.Spec.Images = map[string]v1beta1.ImageSpec{"reg.test/app": spec}
	w.source.Modify(w.object)
}

func (w *world) phases() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := ""
	for _, is := range w.object.Status.ImageStatuses["reg.test/app"].Tags[0].Namespaces {
		text += fmt.Sprintf("%s %s %t;", is.Namespace, is.Phase, is.WithSecret)
	}
	return text
}

func (w *world) users() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var users []string
	for _, p := range w.pulls {
		users = append(users, p.Auth.Username)
	}
	slices.Sort(users)
	return users
}

// Neither does one tenant get the images of another, nor does it say that it has.
func TestSecretsAreUsedOnlyForTheNamespaceThatNamedThem(t *testing.T) {
	t.Parallel()
	policy := &v1beta1.ImageTagPullPolicy{BackoffLimit: new(int32(0))}
	of := func(namespace string, secrets ...string) v1beta1.ImageNamespaceSpec {
		is := v1beta1.ImageNamespaceSpec{Namespace: namespace, PullPolicy: policy}
		for _, name := range secrets {
			is.PullSecrets = append(is.PullSecrets, v1beta1.ReferenceObject{Namespace: secretNamespace, Name: name})
		}
		return is
	}
	for name, tt := range map[string]struct {
		shared []string
		listed []v1beta1.ImageNamespaceSpec
		users  string
	}{
		"by namespace, one without": {[]string{"of-shop"}, []v1beta1.ImageNamespaceSpec{of("mallory"), of("shop", "of-shop")}, "[ shop]"},
		"by namespace, each its own": {
			[]string{"of-shop", "of-mallory"}, []v1beta1.ImageNamespaceSpec{of("mallory", "of-mallory"), of("shop", "of-shop")}, "[mallory shop]",
		},
		"a copy that is not of the namespace": {[]string{"of-shop"}, []v1beta1.ImageNamespaceSpec{of("mallory", "of-shop"), of("shop", "of-shop")}, "[ shop]"},
		"where the CRD is OpenKruise's":       {[]string{"of-shop", "of-mallory"}, nil, "[mallory shop]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.private()
				w.tenants(tt.shared, tt.listed...)
				w.run()
				w.after(time.Minute) // mallory waits for shop's pull of the same image
				if got := w.phases(); got != "mallory Failed false;shop Succeeded true;" {
					t.Errorf("%s", got)
				}
				if got := fmt.Sprint(w.users()); got != tt.users {
					t.Errorf("pulls as %s, want %s", got, tt.users)
				}
				pulls := len(w.users())
				w.run() // like after a restart of the daemon: the outcomes are known
				w.after(time.Minute)
				if got := w.phases(); got != "mallory Failed false;shop Succeeded true;" || len(w.users()) != pulls {
					t.Errorf("after a restart: %s, %d pulls", got, len(w.users())-pulls)
				}
			})
		})
	}
}

// What the node has from elsewhere counts for everybody, as preloaded images do for kubelet.
func TestImageThatTheNodeHasWithoutASecretCountsForEverybody(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.private()
		w.onNode["reg.test/app:v1"] = "sha256:id"
		w.tenants([]string{"of-shop"})
		w.run()
		w.after(time.Minute)
		if got := w.phases(); got != "mallory Succeeded false;shop Succeeded false;" || len(w.users()) != 0 {
			t.Errorf("%s, pulls as %q", got, w.users())
		}
	})
}

// Thousands of entries of Secrets would keep a pull from its end for hours.
func TestCredentialsOfAPullAreBounded(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		entries := make([]string, 200)
		for i := range entries {
			host := []byte("reg.test")
			host[i%8] = '*' // each key once
			if i%8 == 3 {
				host = []byte("r*.te?t")
			}
			entries[i] = fmt.Sprintf(`"%s%s":{"username":"u%d","password":"p"}`, host, strings.Repeat("/", 1+i/8), i)
		}
		w.secrets[secretNamespace+"/s"] = secret(corev1.SecretTypeDockerConfigJson, `{"auths":{`+strings.Join(entries, ",")+`}}`)
		w.pull = func(_ context.Context, r cri.PullRequest) (string, error) {
			return "", fmt.Errorf("pull %s: %w: 401", r.Image, cri.ErrUnauthorized)
		}
		w.want(1, "reg.test/app:v1")
		w.run()
		w.after(900 * time.Millisecond)
		if n := len(w.users()); n != 64 {
			t.Errorf("%d credentials are tried", n)
		}
		if got := w.message("reg.test/app"); !strings.Contains(got, "200 credentials of pull secrets match, of which 64 are tried") {
			t.Errorf("message %q", got)
		}
	})
}

// A public image is there for every namespace: it does not count as pulled with a secret.
func TestAPublicImageIsNotPulledWithASecret(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.tenants(nil, v1beta1.ImageNamespaceSpec{Namespace: "shop"})
		w.run()
		w.after(time.Minute)
		if got := w.phases(); got != "mallory Succeeded false;shop Succeeded false;" {
			t.Error(got)
		}
	})
}
