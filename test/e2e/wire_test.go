package e2e_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

func TestKubectlWait(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.start(s.podOf("web", shell("app", obedient), shell("stubborn", stubborn)))
	const manifest = `
apiVersion: apps.kruise.io/v1beta1
kind: ContainerRecreateRequest
metadata: {name: restart-app}
spec:
  podName: web
  containers: [{name: app}]
`
	out, err := s.kubectl(t.Context(), manifest, "--namespace", s.namespace, "apply", "-f", "-")
	s.check(err, "kubectl apply: %s", out)
	s.run("wait", "--for=condition=Succeeded", "crr/restart-app", "--timeout=60s")
	s.restarted(before, "app", 1)
	// Applying it again changes nothing, whoever applies.
	out, err = s.kubectl(t.Context(), manifest, "--namespace", s.namespace, "apply", "-f", "-")
	s.check(err, "kubectl apply again: %s", out)
	out, err = s.kubectl(t.Context(), manifest, "--namespace", s.namespace, "apply", "--server-side", "--force-conflicts", "-f", "-")
	s.check(err, "kubectl apply --server-side: %s", out)
	if table := s.run("get", "crr", "restart-app"); !containsAll(table, []string{"PHASE", "RESULT", "POD", "NODE", "Completed", "Succeeded", "web"}) {
		t.Errorf("kubectl get crr:\n%s", table)
	}
	s.ask("late", "web/stubborn", deadline(3))
	s.run("wait", "--for=condition=Failed", "crr/late", "--timeout=60s")
	s.restarted(before, "app", 1)
}

// TestV1alpha1RoundTrip makes a request as clients of OpenKruise up to 1.9 do, and looks at it through both versions.
func TestV1alpha1RoundTrip(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.start(s.podOf("web", shell("app", obedient)))
	manifest := `
apiVersion: apps.kruise.io/v1alpha1
kind: ContainerRecreateRequest
metadata: {name: r}
spec:
  podName: web
  containers: [{name: app}]
  strategy: {failurePolicy: Ignore, minStartedSeconds: 1}
  activeDeadlineSeconds: 300
`
	out, err := s.kubectl(t.Context(), manifest, "--namespace", s.namespace, "create", "-f", "-")
	s.check(err, "kubectl create: %s", out)
	stored := s.succeeded("r")
	s.restarted(before, "app", 1)
	if got := stored.Spec.Strategy; got.FailurePolicy != "Ignore" || got.MinStartedSeconds != 1 || *stored.Spec.ActiveDeadlineSeconds != 300 {
		t.Errorf("stored spec %+v", stored.Spec)
	}
	s.awaitRequest("r", "to be retired", func(r *request) bool { return r.Labels[v1beta1.LabelActive] == "" })
	old := &v1alpha1.ContainerRecreateRequest{}
	s.check(s.Get(t.Context(), s.key("r"), old), "get v1alpha1")
	if old.Status.Phase != "Completed" || old.Status.CompletionTime == nil || len(old.Status.ContainerRecreateStates) != 1 {
		t.Errorf("status in v1alpha1: %+v", old.Status)
	}
	// A client of OpenKruise 1.9 replaces the status without the conditions, which it does not know.
	metav1.SetMetaDataLabel(&old.ObjectMeta, "team", "a")
	s.check(s.Update(t.Context(), old), "update v1alpha1")
	old.Status.Conditions = nil
	s.check(s.Status().Update(t.Context(), old), "update status of v1alpha1")
	s.awaitRequest("r", "to have its conditions again", func(r *request) bool {
		return r.Labels["team"] == "a" && meta.IsStatusConditionTrue(r.Status.Conditions, v1beta1.ConditionSucceeded)
	})
}
