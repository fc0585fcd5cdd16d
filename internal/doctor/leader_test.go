package doctor_test

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/refit-project/refit/internal/doctor"
)

// All replicas are ready, and nothing is reconciled.
func TestAManagerThatDoesNotLeadIsFound(t *testing.T) {
	t.Parallel()
	lease := func(w *world) *coordinationv1.Lease { return w.objects["lease"].(*coordinationv1.Lease) }
	for name, tc := range map[string]struct {
		change func(*world)
		result doctor.Result
		words  string
	}{
		"leads":      {func(*world) {}, doctor.OK, "a replica leads"},
		"no Lease":   {func(w *world) { w.drop("lease") }, doctor.Failed, "there is no Lease refit-manager in namespace refit-system"},
		"no manager": {func(w *world) { w.drop("manager"); w.drop("lease") }, doctor.Skipped, "there is no refit-manager"},
		"not renewed": {func(w *world) {
			lease(w).Spec.RenewTime = new(metav1.NewMicroTime(now.Add(-10 * time.Minute)))
		}, doctor.Failed, "no replica leads, so that webhooks alone work: the Lease refit-manager was renewed 10m0s ago"},
		"never renewed": {func(w *world) {
			lease(w).Spec.RenewTime, lease(w).CreationTimestamp = nil, metav1.NewTime(now.Add(-10*time.Minute))
		}, doctor.Failed, "no replica leads"},
		"installed a moment ago": {func(w *world) {
			lease(w).Spec.RenewTime, lease(w).CreationTimestamp = nil, metav1.NewTime(now.Add(-5*time.Second))
		}, doctor.OK, "leads"},
		"may not be read": {func(w *world) {
			w.read["*v1.Lease"] = apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "refit-manager", errors.New("no"))
		}, doctor.Skipped, "Leases of namespace refit-system: you may not read them"},
		"without an election": {func(w *world) {
			w.drop("lease")
			w.objects["manager"].(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Args = []string{"--leader-elect=false"}
		}, doctor.Skipped, "--leader-elect=false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tc.change(w)
			w.finds(t, "leader", tc.result, tc.words)
		})
	}
}
