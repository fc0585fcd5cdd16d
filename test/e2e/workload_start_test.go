package e2e_test

import (
	"context"
	"testing"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
)

// The API server holds a workload by its label, which it keeps in writes that remove it. Not in parallel: refit-manager is stopped.
func TestWorkloadIsHeldByItsLabelWithoutRefitManager(t *testing.T) {
	w := newWorkload(t, "Deployment", ownDeployment)
	pods := w.ready(2)
	w.policy(", paused: true")
	labelled := func() bool {
		t.Helper()
		u, err := w.get(t.Context())
		w.check(err, "read the workload")
		return u.GetLabels()[refitv1alpha1.LabelHoldUID] == string(u.GetUID())
	}
	if !labelled() {
		t.Error("accepted before the workload has the label")
	}
	w.scaleManager(0)

	w.input(w.manifest("web", ownDeployment, image), "replace")
	if !labelled() {
		t.Error("a replacement has removed the label")
	}
	w.input(w.manifest("web", ownDeployment, newImage), "replace")
	w.isHeld("replace", w.stored(), 0)
	if !labelled() {
		t.Error("a replacement of a held workload has removed the label")
	}
	w.settled()
	w.keeps(pods)

	w.run("label", w.ref, refitv1alpha1.LabelHoldUID+"=none", "--overwrite")
	w.run("rollout", "resume", w.ref)
	w.await("the Deployment's own rollout", func(ctx context.Context) (bool, error) {
		u, err := w.get(ctx)
		return err == nil && field(u, "status.updatedReplicas") == "2", err
	})
}
