package workload

import (
	"log/slog"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/kit/hostile"
	"github.com/refit-project/refit/test/kit/reviewed"
)

// FuzzHeldWorkloads makes workloads that have a policy of their parts: each review of a change is answered, within bounds.
func FuzzHeldWorkloads(f *testing.F) {
	for _, seed := range hostile.Seeds() {
		f.Add(seed, []byte{1})
		f.Add([]byte{1}, seed)
	}
	parts := map[string]any{
		"Deployment": struct {
			Metadata metav1.ObjectMeta     `json:"metadata"`
			Spec     appsv1.DeploymentSpec `json:"spec"`
		}{},
		"StatefulSet": struct {
			Metadata metav1.ObjectMeta      `json:"metadata"`
			Spec     appsv1.StatefulSetSpec `json:"spec"`
		}{},
		"DaemonSet": struct {
			Metadata metav1.ObjectMeta    `json:"metadata"`
			Spec     appsv1.DaemonSetSpec `json:"spec"`
		}{},
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			f.Fatal(err)
		}
	}
	var policies []client.Object
	for kind := range parts {
		policy := &v1alpha1.InPlaceUpdatePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "of-" + strings.ToLower(kind)}}
		policy.Spec.TargetRef = v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: kind, Name: "app"} // the name that honest texts have
		policy.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue}}
		policies = append(policies, policy)
	}
	h := &holder{decoder: admission.NewDecoder(scheme), Config: Config{Live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(policies...).Build(), User: manager, Logger: slog.New(slog.DiscardHandler)}}
	f.Fuzz(func(t *testing.T, sent, stored []byte) {
		for kind, of := range parts {
			reviewed.Hostile(t, h, "UPDATE", kind, hostile.Object("apps/v1", kind, of, sent), hostile.Object("apps/v1", kind, of, stored))
		}
		reviewed.Hostile(t, h, "UPDATE", "Deployment", sent, stored) // any text
	})
}
