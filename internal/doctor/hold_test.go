package doctor_test

import (
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/doctor"
)

func updatePolicy(hold v1alpha1.HoldPolicy) *v1alpha1.InPlaceUpdatePolicy {
	return &v1alpha1.InPlaceUpdatePolicy{ObjectMeta: meta("shop", "web"), Spec: v1alpha1.InPlaceUpdatePolicySpec{HoldPolicy: hold}}
}

func held(workload client.Object) client.Object {
	workload.SetLabels(map[string]string{v1alpha1.LabelHeld: "true"})
	return workload
}

func TestWorkloadsThatNothingHoldsAreFound(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*testing.T, *world)
		check  string
		result doctor.Result
		words  string
	}{
		"no policies for workloads":    {func(*testing.T, *world) {}, "hold", doctor.Skipped, "no InPlaceUpdatePolicies"},
		"workloads that nothing holds": {func(_ *testing.T, w *world) { w.add("p", updatePolicy("")) }, "hold", doctor.Failed, "as of shop/web"},
		"no workload is held":          {func(*testing.T, *world) {}, "held", doctor.Skipped, "no workload"},
		"held workloads without a policy": {func(_ *testing.T, w *world) {
			w.add("p", updatePolicy(v1alpha1.HoldByOwner))
			w.add("other", held(&appsv1.StatefulSet{ObjectMeta: meta("shop", "web")}))
		}, "held", doctor.Warning, "StatefulSet shop/web; create a policy"},
		"workloads that are held next, without a policy": {func(_ *testing.T, w *world) {
			set := &appsv1.StatefulSet{ObjectMeta: meta("shop", "web")}
			set.UID, set.Labels = "u", map[string]string{v1alpha1.LabelHoldUID: "u"}
			w.add("web", set)
		}, "held", doctor.Warning, "holds them when their templates change next: StatefulSet shop/web"},
		"held workloads with a policy": {func(_ *testing.T, w *world) {
			p := updatePolicy(v1alpha1.HoldByOwner)
			p.Spec.TargetRef = v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}
			w.add("p", p)
			w.add("web", held(&appsv1.StatefulSet{ObjectMeta: meta("shop", "web")}))
		}, "held", doctor.OK, "1 held"},
		"workloads held by their owners": {func(_ *testing.T, w *world) { w.add("p", updatePolicy(v1alpha1.HoldByOwner)) }, "hold", doctor.OK, "ByOwner"},
		"workloads held by the API server": {func(_ *testing.T, w *world) {
			w.add("p", updatePolicy(""))
			w.add("hold", &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: meta("", "refit-hold")})
			w.add("bound", &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta("", "refit-hold")})
		}, "hold", doctor.OK, "MutatingAdmissionPolicy"},
		"workloads whose policy is not bound": {func(_ *testing.T, w *world) {
			w.add("p", updatePolicy(""))
			w.add("hold", &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: meta("", "refit-hold")})
		}, "hold", doctor.Failed, "nothing holds"},
		"workloads held by the webhook": {func(t *testing.T, w *world) {
			w.add("p", updatePolicy(""))
			w.add("hold", configuration("refit-manager-workloads", certificate(t, now.Add(900*24*time.Hour)), "mworkload.refit.dev"))
		}, "hold", doctor.OK, "refit-manager-workloads"},
		"webhook for workloads without authority": {func(_ *testing.T, w *world) {
			w.add("hold", configuration("refit-manager-workloads", nil, "mworkload.refit.dev"))
		}, "certificates", doctor.Failed, "mworkload.refit.dev: caBundle is empty"},
		"in-place updates that are turned off": {func(_ *testing.T, w *world) {
			w.add("p", updatePolicy(""))
			w.objects["manager"].(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Args = []string{"--in-place-updates=false"}
		}, "features", doctor.Failed, "nothing processes 1 InPlaceUpdatePolicy, as shop/web: refit-manager has --in-place-updates=false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tc.change(t, w)
			w.finds(t, tc.check, tc.result, tc.words)
		})
	}
}
