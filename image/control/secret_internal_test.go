package control

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/control/secretcopy"
	"github.com/refit-project/refit/image/entry"
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
	w.check(w.Get(w.t.Context(), client.ObjectKey{Namespace: secretNamespace, Name: entry.SecretCopy("shop", "registry")}, &secret))
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
				if want := []v1beta1.ReferenceObject{{Namespace: secretNamespace, Name: entry.SecretCopy("shop", "registry")}}; !cmp.Equal(copies, want) {
					t.Errorf("copies %v", copies)
				}
			}
			makeCopies()
			version := w.copied().ResourceVersion
			w.check(w.Delete(t.Context(), first))
			w.check(w.Create(t.Context(), second))
			makeCopies()
			got := w.copied()
			if diff := cmp.Diff(second.Data, got.Data); diff != "" || got.Type != second.Type || got.Annotations[v1beta1.AnnotationPullSecretSource] != "shop/registry" {
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
	taken.Namespace, taken.Name = secretNamespace, entry.SecretCopy("shop", "registry")
	another := taken.DeepCopy()
	another.Labels, another.Annotations = map[string]string{v1beta1.LabelPullSecretCopyBy: "refit-manager"}, map[string]string{v1beta1.AnnotationPullSecretSource: "game/registry"}
	for name, tt := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"a copy of another Secret": {[]client.Object{credentials(corev1.SecretTypeDockerConfigJson, "{}"), another}, "is the copy of game/registry"},
		"another type of Secret":   {[]client.Object{credentials(corev1.SecretTypeOpaque, "{}")}, `pull secret registry is of type "Opaque"`},
		"a Secret of others":       {[]client.Object{credentials(corev1.SecretTypeDockerConfigJson, "{}"), taken}, "exists and is not a copy made by refit-manager"},
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
	w.removeCopies()
	w.copied()
	w.check(w.Delete(t.Context(), other))
	w.removeCopies()
	var left corev1.SecretList
	w.check(w.List(t.Context(), &left, client.InNamespace(secretNamespace)))
	if len(left.Items) > 0 {
		t.Errorf("left: %s", left.Items[0].Name)
	}
}

func TestCopyOfAPullSecretNamesTheJobsThatNeedIt(t *testing.T) {
	t.Parallel()
	other := pullJob(withCredentials, func(j *v1beta1.ImagePullJob) { j.Name, j.UID, j.Spec.Image = "other", "other", "game:v2" })
	w := newWorld(t, node("a", nil), credentials(corev1.SecretTypeDockerConfigJson, "{}"), pullJob(withCredentials), other)
	w.look()
	if got := w.copied().Annotations[v1beta1.AnnotationPullSecretReferences]; got != "shop/j,shop/other" {
		t.Errorf("jobs %q", got)
	}
	w.check(w.Delete(t.Context(), pullJob()))
	w.reconcile((&jobs{w.api}).Reconcile, pullJob())
	w.removeCopies()
	if got := w.copied().Annotations[v1beta1.AnnotationPullSecretReferences]; got != "shop/other" {
		t.Errorf("jobs %q after the end of one", got)
	}
}

// It says what the cluster's administrator has to do.
func TestAPullSecretThatMayNotBeReadIsReportedWithTheRoleThatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil), credentials(corev1.SecretTypeDockerConfigJson, "{}"), pullJob(withCredentials))
	live := interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if _, ok := into.(*corev1.Secret); ok && key.Namespace == "shop" {
				return apierrors.NewForbidden(corev1.Resource("secrets"), key.Name, nil)
			}
			return c.Get(ctx, key, into, options...)
		},
	})
	w.api.copies = secretcopy.New(w.Client, live, secretNamespace)
	w.look()
	if got := w.job("j").Status.Message; !strings.Contains(got, "pull secret registry cannot be read: bind the ClusterRole refit-pull-secret-reader in namespace shop") {
		t.Errorf("message %q", got)
	}
}

// A job that is being deleted, and that others keep with a finalizer, pulls no more.
func TestAJobThatIsBeingDeletedNeedsNoCopyOfItsPullSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil), credentials(corev1.SecretTypeDockerConfigJson, "{}"), pullJob(withCredentials, func(j *v1beta1.ImagePullJob) {
		j.Finalizers = []string{"example.com/mine"}
	}))
	w.look()
	w.copied()
	w.check(w.Delete(t.Context(), w.job("j")))
	w.removeCopies()
	var left corev1.SecretList
	w.check(w.List(t.Context(), &left, client.InNamespace(secretNamespace)))
	if len(left.Items) > 0 {
		t.Errorf("left: %s", left.Items[0].Name)
	}
}
