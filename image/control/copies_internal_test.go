package control

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/control/secretcopy"
)

// listing calls then once, after jobs have been listed.
type listing struct {
	client.Reader
	then func()
}

func (l *listing) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	err := l.Reader.List(ctx, into, options...)
	if _, ok := into.(*v1beta1.ImagePullJobList); ok && l.then != nil {
		then := l.then
		l.then = nil
		then()
	}
	return err
}

// A job is created, and its pulls are started, while the copies that the last job has used are removed.
func TestCopyOfAPullSecretIsThereForAJobThatIsCreatedWhileCopiesAreRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		private := func(j *v1beta1.ImagePullJob) { j.Spec.PullSecrets = []string{"registry"} }
		w := newWorld(t, node("a", nil), pullJob(private), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "registry"}, Type: corev1.SecretTypeDockerConfigJson,
		})
		w.look()
		w.check(w.Delete(t.Context(), w.job("j")))
		second := pullJob(private, func(j *v1beta1.ImagePullJob) { j.Name, j.UID, j.Spec.Image = "second", "second", "game:v2" })
		started := make(chan error, 1)
		w.api.copies = secretcopy.New(w.Client, &listing{Reader: w.Client, then: func() {
			w.check(w.Create(t.Context(), second))
			go func() {
				_, err := (&jobs{w.api}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(second)})
				started <- err
			}()
			synctest.Wait() // until it has ended or waits
		}}, secretNamespace)
		w.removeCopies()
		w.check(<-started)
		for _, secret := range w.nodeImage("a").Spec.Images["game"].PullSecrets {
			w.check(w.Get(t.Context(), client.ObjectKey{Namespace: secret.Namespace, Name: secret.Name}, &corev1.Secret{}))
		}
		if tags := w.nodeImage("a").Spec.Images["game"].Tags; len(tags) != 2 {
			t.Errorf("the second job has not begun: %+v", tags)
		}
	})
}
