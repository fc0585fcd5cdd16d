package control

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
)

// Nothing tells when the Secret is created: it is looked for again, and the job's deadline is kept.
func TestJobStartsWhenItsPullSecretIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil), pullJob(func(j *v1beta1.ImagePullJob) {
		j.Spec.PullSecrets = []string{"registry"}
		j.Spec.CompletionPolicy.ActiveDeadlineSeconds = new(int64(15))
	}))
	w.look()
	for _, want := range []time.Duration{startDelay, 5 * time.Second} {
		result, err := (&jobs{w.api}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "j"}})
		if err != nil || result.RequeueAfter != want {
			t.Errorf("%+v, %v, want another look after %s", result, err, want)
		}
		w.now = w.now.Add(startDelay)
	}
	w.now = w.now.Add(-startDelay)
	w.check(w.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "registry"}, Type: corev1.SecretTypeDockerConfigJson,
	}))
	w.look()
	if m := w.job("j").Status.Message; m != "job is running, progress 0.0%" || len(w.nodeImage("a").Spec.Images) != 1 {
		t.Errorf("message %q", m)
	}
}

// The API server drops the conditions, which OpenKruise's CRD does not have.
func TestEndOfAJobIsToldUnderOpenKruisesCRD(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil), pullJob(func(j *v1beta1.ImagePullJob) { j.Spec.Image = "a b" }))
	recorder := events.NewFakeRecorder(10)
	w.api.Recorder = recorder
	w.api.client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, subresource string, object client.Object, options ...client.SubResourceUpdateOption) error {
			if job, ok := object.(*v1beta1.ImagePullJob); ok {
				job.Status.Conditions = nil
			}
			return c.SubResource(subresource).Update(ctx, object, options...)
		},
	})
	w.look()
	if len(recorder.Events) != 1 {
		t.Fatalf("%d Events", len(recorder.Events))
	}
	if event := <-recorder.Events; !strings.Contains(event, "Warning InvalidImage") {
		t.Error(event)
	}
}

// One NodeImage that the API server refuses does not keep a job from the other nodes.
func TestNodeImageThatCannotBeWrittenDoesNotHoldUpTheOtherNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil), node("b", nil), node("c", nil), pullJob())
	w.look()
	for _, name := range []string{"a", "b", "c"} { // as before the job
		object := w.nodeImage(name)
		object.Spec.Images = nil
		w.check(w.Update(t.Context(), object))
	}
	w.api.client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if object.GetName() == "a" {
				return errors.New("etcdserver: request is too large")
			}
			return c.Patch(ctx, object, patch, options...)
		},
	})
	for _, name := range []string{"b", "c"} {
		w.reconcile((&jobs{w.api}).Reconcile, pullJob())
		w.daemon(name, v1beta1.ImagePhaseSucceeded)
	}
	w.reconcile((&jobs{w.api}).Reconcile, pullJob())
	if s := w.job("j").Status; s.Succeeded != 2 || !strings.Contains(s.Message, "NodeImage a: etcdserver: request is too large") {
		t.Errorf("%+v", s)
	}
}

// A job that cannot be read keeps what it has asked for: its secrets would be missing from the next attempt.
func TestEntryOfAJobThatCannotBeReadIsNotChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil), pullJob(func(j *v1beta1.ImagePullJob) {
		j.Spec.ImagePullPolicy, j.Spec.PullSecrets = v1beta1.PullAlways, []string{"registry"}
	}), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "registry"}, Type: corev1.SecretTypeDockerConfigJson})
	w.look()
	before := w.nodeImage("a").Spec
	w.api.client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if _, ok := into.(*v1beta1.ImagePullJob); ok {
				return errors.New("etcdserver: request timed out")
			}
			return c.Get(ctx, key, into, options...)
		},
	})
	_, err := (&nodeImages{w.api}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "a"}})
	if err == nil || !strings.Contains(err.Error(), "request timed out") {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff(before, w.nodeImage("a").Spec); diff != "" || len(before.Images["game"].PullSecrets) != 1 {
		t.Errorf("(-before +after):\n%s", diff)
	}
}
