package workload_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// A tool that compares manifests with the cluster shows a difference while a field that its manifest names is Refit's.
func TestPolicySaysWhichManifestNamesWhatHoldsTheWorkload(t *testing.T) {
	t.Parallel()
	const differs = ", which differs while the workload is held"
	owns := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) func(*metav1.ObjectMeta) {
		return func(m *metav1.ObjectMeta) {
			m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(fields)}}
		}
	}
	applied := func(text string) func(*metav1.ObjectMeta) {
		return func(m *metav1.ObjectMeta) {
			m.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: text}
		}
	}
	for name, tc := range map[string]struct {
		kind, want string
		is         func(*metav1.ObjectMeta)
	}{
		"applied by Flux":                {"Deployment", "the manifest that flux applies names spec.paused" + differs, owns("flux", metav1.ManagedFieldsOperationApply, `{"f:spec":{"f:paused":{}}}`)},
		"partition":                      {"StatefulSet", "the manifest that flux applies names spec.updateStrategy.rollingUpdate.partition" + differs, owns("flux", metav1.ManagedFieldsOperationApply, `{"f:spec":{"f:updateStrategy":{"f:rollingUpdate":{"f:partition":{}}}}}`)},
		"strategy":                       {"DaemonSet", "the manifest that flux applies names spec.updateStrategy.type" + differs, owns("flux", metav1.ManagedFieldsOperationApply, `{"f:spec":{"f:updateStrategy":{"f:type":{}}}}`)},
		"other fields":                   {"StatefulSet", "", owns("flux", metav1.ManagedFieldsOperationApply, `{"f:spec":{"f:updateStrategy":{"f:type":{}},"f:template":{}}}`)},
		"defaults of who has created it": {"DaemonSet", "", owns("kubectl-create", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:updateStrategy":{"f:type":{}}}}`)},
		"kubectl apply":                  {"Deployment", "the manifest that is applied names spec.paused" + differs, applied(`{"spec":{"paused":false}}`)},
		"kubectl apply of other fields":  {"Deployment", "", applied(`{"spec":{"replicas":1}}`)},
		"not a manifest":                 {"Deployment", "", applied(`{`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.kind, 2)
			tc.is(w.meta())
			w.rounds(1)
			if c := meta.FindStatusCondition(w.policy.Status.Conditions, v1alpha1.ConditionAccepted); c == nil || c.Status != metav1.ConditionTrue || c.Message != tc.want {
				t.Errorf("%+v", c)
			}
			w.policy.Spec.HoldPolicy = v1alpha1.HoldByOwner
			w.rounds(1)
			if c := meta.FindStatusCondition(w.policy.Status.Conditions, v1alpha1.ConditionAccepted); c.Message != "" {
				t.Errorf("held by its owner: %s", c.Message)
			}
		})
	}
}
