package e2e_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
)

// An API server does not know the InPlaceUpdatePolicies for up to 30 s after its start. Here it does not know them, because the policy
// that reads them is not bound. Not in parallel: that is so for the whole cluster.
func TestWorkloadIsHeldByItsLabelWherePoliciesAreNotKnown(t *testing.T) {
	w := newWorkload(t, "Deployment", ownDeployment)
	pods := w.ready(2)
	w.governed()
	w.await("the label", func(ctx context.Context) (bool, error) {
		u, err := w.get(ctx)
		return err == nil && u.GetLabels()[refitv1alpha1.LabelHoldUID] == string(u.GetUID()), err
	})
	w.scaleManager(0)

	other := &workload{fixture: w.fixture, kind: "Deployment", ref: "deployment/other"} // without the label
	other.input(other.manifest("other", "replicas: 0,", image), "apply")
	other.input(`
apiVersion: refit.dev/v1alpha1
kind: InPlaceUpdatePolicy
metadata: {name: other}
spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: other}}
`, "apply")
	other.run("patch", "inplaceupdatepolicy/other", "--subresource=status", "--type=merge", "--patch",
		`{"status":{"matchedPods":0,"conditions":[{"type":"Accepted","status":"True","reason":"Accepted","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	other.awaitHold()
	t.Cleanup(func() {
		policy := filepath.Join(root(), "deploy", "hold", "policy.yaml")
		if out, err := w.kubectl(context.WithoutCancel(t.Context()), "", "apply", "--server-side", "--force-conflicts", "--filename", policy); err != nil {
			t.Errorf("bind the policy again: %v, %s", err, out)
		}
	})
	out, err := w.kubectl(t.Context(), "", "delete", "mutatingadmissionpolicybinding/refit-hold")
	w.check(err, "remove the binding: %s", out)
	w.await("the end of the hold by policies", func(ctx context.Context) (bool, error) {
		out, err := w.kubectl(ctx, "", "set", "image", other.ref, "app="+newImage, "--dry-run=server", "--output=yaml", "--namespace", w.namespace)
		return err == nil && !strings.Contains(out, "paused: true"), err
	})

	w.run("set", "image", w.ref, "app="+newImage)
	w.isHeld("set image", w.stored(), 0)
	w.settled()
	w.keeps(pods)
}
