package images

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// credentials is a pull secret of the namespace of jobs.
func credentials(kind corev1.SecretType, content string) *corev1.Secret {
	name := map[corev1.SecretType]string{corev1.SecretTypeDockercfg: corev1.DockerConfigKey}[kind]
	if name == "" {
		name = corev1.DockerConfigJsonKey
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "registry"}, Type: kind, Data: map[string][]byte{name: []byte(content)}}
}

func withCredentials(j *v1beta1.ImagePullJob) { j.Spec.PullSecrets = []string{"registry"} }

func (w *world) copied() *corev1.Secret {
	w.t.Helper()
	var secret corev1.Secret
	w.check(w.Get(w.t.Context(), client.ObjectKey{Namespace: secretNamespace, Name: copyName("shop", "registry")}, &secret))
	return &secret
}

func TestCopyOfAPullSecretFollowsIt(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]*corev1.Secret{
		"the same":      credentials(corev1.SecretTypeDockerConfigJson, "{}"),
		"other content": credentials(corev1.SecretTypeDockerConfigJson, `{"auths":{}}`),
		"another type":  credentials(corev1.SecretTypeDockercfg, "{}"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := credentials(corev1.SecretTypeDockerConfigJson, "{}")
			w := newWorld(t, first, pullJob(withCredentials))
			makeCopies := func() {
				t.Helper()
				copies, err := (&jobs{w.api}).copySecrets(t.Context(), pullJob(withCredentials))
				w.check(err)
				if want := []v1beta1.ReferenceObject{{Namespace: secretNamespace, Name: copyName("shop", "registry")}}; !cmp.Equal(copies, want) {
					t.Errorf("copies %v", copies)
				}
			}
			makeCopies()
			version := w.copied().ResourceVersion
			w.check(w.Delete(t.Context(), first))
			w.check(w.Create(t.Context(), second))
			makeCopies()
			got := w.copied()
			if diff := cmp.Diff(second.Data, got.Data); diff != "" || got.Type != second.Type || got.Annotations[annotationSource] != "shop/registry" {
				t.Errorf("type %s, annotations %v, data (-want +got):\n%s", got.Type, got.Annotations, diff)
			}
			if name == "the same" && got.ResourceVersion != version {
				t.Error("written, although nothing has changed")
			}
		})
	}
}

// Who may create jobs must not be able to read or replace any Secret through them.
func TestOnlyPullSecretsAreCopiedAndNothingOfOthersIsReplaced(t *testing.T) {
	t.Parallel()
	taken := credentials(corev1.SecretTypeDockerConfigJson, `{"auths":{"theirs":{}}}`)
	taken.Namespace, taken.Name = secretNamespace, copyName("shop", "registry")
	for name, tt := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"another type of Secret": {[]client.Object{credentials(corev1.SecretTypeOpaque, "{}")}, `pull secret registry is of type "Opaque"`},
		"a Secret of others":     {[]client.Object{credentials(corev1.SecretTypeDockerConfigJson, "{}"), taken}, "exists and is not a copy made by refit-manager"},
	} {
		w := newWorld(t, append(tt.objects, node("a", nil), pullJob(withCredentials))...)
		w.look()
		if got := w.job("j").Status.Message; !strings.Contains(got, tt.want) || len(w.nodeImage("a").Spec.Images) > 0 {
			t.Errorf("%s: message %q, images %v", name, got, w.nodeImage("a").Spec.Images)
		}
		if len(tt.objects) > 1 && !cmp.Equal(w.copied().Data, taken.Data) {
			t.Errorf("%s: replaced", name)
		}
	}
}

func TestCopyOfAPullSecretStaysWhileAnyJobNeedsIt(t *testing.T) {
	t.Parallel()
	other := pullJob(withCredentials, func(j *v1beta1.ImagePullJob) { j.Name, j.UID, j.Spec.Image = "other", "other", "game:v2" })
	w := newWorld(t, node("a", nil), credentials(corev1.SecretTypeDockerConfigJson, "{}"), pullJob(withCredentials), other)
	w.look()
	w.check(w.Delete(t.Context(), pullJob()))
	w.reconcile((&jobs{w.api}).Reconcile, pullJob()) // sees that it is gone
	w.copied()
	w.check(w.Delete(t.Context(), other))
	w.reconcile((&jobs{w.api}).Reconcile, other)
	var left corev1.SecretList
	w.check(w.List(t.Context(), &left, client.InNamespace(secretNamespace)))
	if len(left.Items) > 0 {
		t.Errorf("left: %s", left.Items[0].Name)
	}
}
