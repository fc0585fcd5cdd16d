package workload_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// Who waits for Accepted may change the template in the next moment.
func TestPolicyIsAcceptedWhenTheAPIServerHoldsTheWorkload(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 2)
		accepted := func() bool { return meta.IsStatusConditionTrue(w.policy.Status.Conditions, v1alpha1.ConditionAccepted) }
		w.policy.Status.Conditions = nil
		delete(w.meta().Labels, v1alpha1.LabelHoldUID)
		if w.look(0); accepted() || !w.last.Finalizer { // the label is not written
			t.Errorf("%s: accepted %t, finalizer %t, without the label", kind, accepted(), w.last.Finalizer)
		}
		w.rounds(2)
		if !accepted() {
			t.Errorf("%s: not accepted: %v", kind, w.policy.Status.Conditions)
		}
		delete(w.meta().Labels, v1alpha1.LabelHoldUID)
		if w.look(0); !accepted() {
			t.Errorf("%s: not accepted any more, because others have removed the label", kind)
		}
	}
}

// The API server knows which workloads to hold by their label only.
func TestWorkloadHasTheLabelAsLongAsItIsToBeHeld(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 2)
		label := func() string { return w.meta().Labels[v1alpha1.LabelHoldUID] }
		if w.rounds(2); label() != string(w.meta().UID) {
			t.Errorf("%s: label %q", kind, label())
		}
		w.meta().Labels[v1alpha1.LabelHoldUID] = "of-another"
		if w.rounds(2); label() != string(w.meta().UID) {
			t.Errorf("%s: label %q from a copied manifest", kind, label())
		}
		w.policy.Spec.HoldPolicy = v1alpha1.HoldByOwner
		if w.rounds(2); label() != "" {
			t.Errorf("%s: label %q, although the owner holds it", kind, label())
		}
		w.policy.Spec.HoldPolicy = v1alpha1.HoldWhileUpdating
		w.rounds(2)
		w.edit(image("app:2"))
		w.rounds(4)
		now := metav1.NewTime(w.now)
		w.policy.DeletionTimestamp = &now
		if w.rounds(1); label() == "" || !w.last.Finalizer {
			t.Errorf("%s: label %q, finalizer %t in the middle of an update", kind, label(), w.last.Finalizer)
		}
		if w.rounds(60); label() != "" || w.last.Finalizer || w.images()["app:2"] != 2 {
			t.Errorf("%s: label %q, finalizer %t, images %v at the end", kind, label(), w.last.Finalizer, w.images())
		}
	}
}
