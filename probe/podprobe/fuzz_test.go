package podprobe_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/managedfields"
	"github.com/refit-project/refit/probe/podprobe"
)

// FuzzOwnedBy: no record makes the reader panic, and what is read is written as it was.
func FuzzOwnedBy(f *testing.F) {
	f.Add(`{"f:metadata":{"f:labels":{"f:a":{}}},"f:status":{"f:conditions":{"k:{\"type\":\"x\"}":{}}}}`)
	f.Add(`{"f:metadata":[],"f:status":{"f:conditions":{"k:":{},"v:1":{}}}}`)
	f.Fuzz(func(t *testing.T, record string) {
		p := pod("a")
		p.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: managedfields.FieldManager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", FieldsV1: metav1.NewFieldsV1(record),
		}}
		owned := managedfields.OwnedBy(p)
		if changed := podprobe.Plan(p, podprobe.Fields{}, nil).Changed; changed == (len(owned.Labels)+len(owned.Annotations)+len(owned.Conditions) == 0) {
			t.Errorf("owns %v, and is to be cleaned: %t", owned, changed)
		}
	})
}
