package control

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// decodingReader decodes rollouts into the object that it is given, as the client of the API server does: fields that the response
// does not have stay.
type decodingReader struct{ client.Reader }

func (r decodingReader) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if _, is := into.(*v1alpha1.RestartRollout); !is {
		return r.Reader.Get(ctx, key, into, options...)
	}
	var stored v1alpha1.RestartRollout
	if err := r.Reader.Get(ctx, key, &stored, options...); err != nil {
		return err
	}
	text, err := json.Marshal(&stored)
	return errors.Join(err, json.Unmarshal(text, into))
}

// A user has removed the partition, and the cache does not show it yet.
func TestAFieldThatWasRemovedIsNotKeptFromTheCache(t *testing.T) {
	t.Parallel()
	all := func(s *v1alpha1.RestartRolloutSpec) { s.MaxUnavailable = new(intstr.FromString("100%")) }
	cached := object(all, func(s *v1alpha1.RestartRolloutSpec) { s.Partition = new(intstr.FromInt32(1)) })
	pods := []client.Object{deployment(), podOf("web-abc", 0), podOf("web-abc", 1)}
	a := behind(t, append(pods, cached), append(pods, object(all)))
	a.reconciler.live = decodingReader{a.reconciler.live}
	decision, err := a.reconciler.decide(t.Context(), cached.DeepCopy())
	if err != nil || len(decision.Start) != 2 {
		t.Errorf("%v, %d restarts begin, want 2", err, len(decision.Start))
	}
}

// Argo CD deletes objects in the foreground: a rollout exists until its requests are deleted.
func TestARolloutThatIsBeingDeletedBeginsNothing(t *testing.T) {
	t.Parallel()
	deleted := object()
	deleted.Finalizers, deleted.DeletionTimestamp = []string{metav1.FinalizerDeleteDependents}, new(metav1.NewTime(noon))
	a := behind(t, []client.Object{deployment(), podOf("web-abc", 0), object()}, []client.Object{deployment(), podOf("web-abc", 0), deleted})
	if _, err := a.reconciler.decide(t.Context(), object()); !errors.Is(err, errDeleting) {
		t.Errorf("%v", err)
	}
}
