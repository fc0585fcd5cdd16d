package policy_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/rollout/cli/policy"
)

// Which pod is next, what it waits for, and what the policy says.
func TestWhyAWorkloadIsNotUpdated(t *testing.T) {
	t.Parallel()
	f := newFixture(t, existing(in(metav1.ConditionTrue, v1alpha1.ReasonDisruptionBudget, "PodDisruptionBudget web allows no disruption")))
	var deployment appsv1.Deployment
	if err := f.config.API.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, &deployment); err != nil {
		t.Fatal(err)
	}
	deployment.Spec.Template = template("app:3")
	if err := f.config.API.Update(t.Context(), &deployment); err != nil {
		t.Fatal(err)
	}
	f.expects(t, policy.Why(t.Context(), f.config.Config, web), console.ExitDone, "InPlaceUpdatePolicy gently", "Progressing=True  PodDisruptionBudget: PodDisruptionBudget web allows no disruption")
	var rows []string
	for line := range strings.Lines(f.out.String()) {
		if strings.HasPrefix(line, "web-2-") {
			rows = append(rows, strings.Join(strings.Fields(line), " "))
		}
	}
	want := []string{"web-2-a node-1 next PodDisruptionBudget: PodDisruptionBudget web allows no disruption", "web-2-b node-1 waiting"}
	if strings.Join(rows, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", f.out.String())
	}
}

func TestWhyOfAWorkloadWithoutAPolicy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.expects(t, policy.Why(t.Context(), f.config.Config, web), console.ExitDone, "deployment/web has no InPlaceUpdatePolicy", "kubectl rollout status deployment/web --namespace=shop")
}
