package control

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// Kubernetes deletes the pods of a namespace before the workloads and the rollouts.
func TestARolloutDoesNotSucceedInANamespaceThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		deleted bool
		kind    string
		reason  string
	}{
		"being deleted": {true, v1alpha1.ConditionFailed, v1alpha1.ReasonNamespaceTerminating},
		"not deleted":   {false, v1alpha1.ConditionSucceeded, v1alpha1.ReasonNoPods},
	} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Finalizers: []string{"test/keep"}}}
		pod := podOf("web-abc", 0)
		pod.Finalizers, pod.DeletionTimestamp = []string{"test/keep"}, new(metav1.NewTime(noon))
		if tt.deleted {
			namespace.DeletionTimestamp = new(metav1.NewTime(noon))
		}
		a := newAPIServer(t, deployment(), namespace, pod, object())
		a.settle()
		c := meta.FindStatusCondition(a.rollout().Status.Conditions, tt.kind)
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != tt.reason || tt.deleted && !strings.Contains(c.Message, "the namespace is being deleted") {
			t.Errorf("%s: %+v", name, a.rollout().Status)
		}
	}
}
