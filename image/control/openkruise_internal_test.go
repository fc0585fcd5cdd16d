package control

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// protected has the finalizer that kruise-manager adds to every job.
func protected(j *v1beta1.ImagePullJob) {
	j.Finalizers = []string{"example.com/mine", v1beta1.FinalizerDeletionProtection}
}

func TestJobsOfOpenKruiseCanBeDeleted(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]bool{"under way": false, "ended": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, node("a", nil), pullJob(protected))
			w.look()
			if got := w.job("j").Finalizers; len(got) != 2 {
				t.Fatalf("finalizers %v of a job under way", got)
			}
			if end {
				w.daemon("a", v1beta1.ImagePhaseSucceeded)
			} else {
				w.check(w.Delete(t.Context(), w.job("j")))
			}
			w.look()
			if diff := cmp.Diff([]string{"example.com/mine"}, w.job("j").Finalizers); diff != "" {
				t.Fatalf("finalizers (-want +got):\n%s", diff)
			}
			last := w.job("j")
			last.Finalizers = nil
			w.check(w.Update(t.Context(), last))
			if end {
				w.check(w.Delete(t.Context(), w.job("j")))
			}
			w.look()
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(last), last); !apierrors.IsNotFound(err) || len(w.nodeImage("a").Spec.Images) > 0 {
				t.Errorf("the job: %v; the NodeImage has %v", err, w.nodeImage("a").Spec.Images)
			}
		})
	}
}

func TestCopiesOfPullSecretsThatOpenKruiseHasLeftAreRemoved(t *testing.T) {
	t.Parallel()
	secret := func(name string, annotations map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretNamespace, Name: name, Annotations: annotations}}
	}
	left := func(name, source string) *corev1.Secret {
		return secret(name, map[string]string{v1beta1.AnnotationPullSecretSource: source, v1beta1.AnnotationPullSecretReferences: ""})
	}
	running := pullJob(withCredentials, func(j *v1beta1.ImagePullJob) { j.Name, j.UID, j.Spec.Image = "other", "other", "game:v2" })
	w := newWorld(t, node("a", nil), credentials(corev1.SecretTypeDockerConfigJson, "{}"), pullJob(), running,
		left("registry-0a1b2c", "shop/registry"), left("gone-0a1b2c", "shop/gone"), left("registry-3d4e5f", "game/registry"),
		secret("by-hand", map[string]string{v1beta1.AnnotationPullSecretSource: "shop/gone"}))
	w.look()
	names := func() (names []string) {
		var list corev1.SecretList
		w.check(w.List(t.Context(), &list, client.InNamespace(secretNamespace)))
		for i := range list.Items {
			if list.Items[i].Labels[v1beta1.LabelPullSecretCopyBy] == "" {
				names = append(names, list.Items[i].Name)
			}
		}
		slices.Sort(names)
		return names
	}
	w.check(w.Delete(t.Context(), pullJob()))
	w.removeCopies()
	if diff := cmp.Diff([]string{"by-hand", "registry-0a1b2c"}, names()); diff != "" {
		t.Errorf("while a job needs one (-want +got):\n%s", diff)
	}
	w.check(w.Delete(t.Context(), running))
	w.removeCopies()
	if diff := cmp.Diff([]string{"by-hand"}, names()); diff != "" {
		t.Errorf("when no job needs them (-want +got):\n%s", diff)
	}
}
