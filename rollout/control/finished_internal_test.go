package control

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/crr"
)

// The record of the end is written first: a status without it could be lost in a backup, and the pods restarted again.
func TestEndOfARolloutIsRecordedBeforeItsStatus(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), object())
	a.settle()
	a.complete(crr.Outcome{})
	working := a.reconciler.client
	a.reconciler.client = failing(a.Client, "write *v1alpha1.RestartRollout")
	if _, err := a.reconciler.Reconcile(t.Context(), key); !errors.Is(err, errAway) {
		t.Fatalf("%v", err)
	}
	stored := a.rollout()
	if stored.Annotations[v1alpha1.AnnotationFinished] == "" || stored.Status.CompletionTime != nil {
		t.Fatalf("annotations %v, %+v", stored.Annotations, stored.Status)
	}
	a.reconciler.client = working
	a.settle()
	if s := a.rollout().Status; !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionSucceeded) || s.RestartedPods != 1 || len(a.requests()) != 1 {
		t.Errorf("%d requests, %+v", len(a.requests()), s)
	}
}

func TestFinishedRolloutThatIsRestoredCreatesNoRequests(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), object())
	a.settle()
	a.complete(crr.Outcome{})
	a.settle()
	restored := object()
	restored.UID, restored.Annotations = "restored", a.rollout().Annotations
	b := newAPIServer(t, deployment(), podOf("web-abc", 0), restored)
	b.settle()
	if s := b.rollout().Status; !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionFinished) || len(b.requests()) != 0 {
		t.Errorf("%d requests, %+v", len(b.requests()), s)
	}
}

func TestWorkloadOfAKindThatTheAPIServerDoesNotHaveEndsTheRollout(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, podOf("web-abc", 0), object())
	a.reconciler.live = unknownKinds{a.reconciler.live}
	a.settle()
	if c := meta.FindStatusCondition(a.rollout().Status.Conditions, v1alpha1.ConditionFailed); c == nil || c.Reason != v1alpha1.ReasonTargetNotReadable {
		t.Errorf("%+v", c)
	}
}

// unknownKinds answers as an API server without the kind of the workload.
type unknownKinds struct{ client.Reader }

// Get implements client.Reader.
func (u unknownKinds) Get(ctx context.Context, name client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if _, workload := object.(*unstructured.Unstructured); workload {
		kind := object.GetObjectKind().GroupVersionKind()
		return &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
	}
	return u.Reader.Get(ctx, name, object, opts...)
}
