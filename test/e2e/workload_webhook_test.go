package e2e_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// holdsByWebhook has the webhook hold workloads until the end of the test, as before Kubernetes 1.36.
func (w *workload) holdsByWebhook() {
	w.t.Helper()
	if !w.heldByPolicy() {
		return
	}
	webhook, policy := filepath.Join(root(), "deploy", "hold-webhook", "webhook.yaml"), filepath.Join(root(), "deploy", "hold", "policy.yaml")
	const job = "job/refit-certificates-hold"
	w.t.Cleanup(func() {
		for _, args := range [][]string{
			{"apply", "--server-side", "--force-conflicts", "--filename", policy},
			{"delete", "--ignore-not-found", "--filename", webhook},
			{"delete", "--ignore-not-found", "--namespace", systemNamespace, job},
		} {
			if out, err := w.kubectl(context.WithoutCancel(w.t.Context()), "", args...); err != nil {
				w.t.Errorf("kubectl %s: %v, %s", strings.Join(args, " "), err, out)
			}
		}
	})
	for _, args := range [][]string{
		{"apply", "--server-side", "--filename", webhook},
		{"create", "job", "refit-certificates-hold", "--namespace", systemNamespace, "--from=cronjob/refit-certificates"},
		{"wait", "mutatingwebhookconfiguration/refit-manager-workloads", "--for=jsonpath={.webhooks[0].clientConfig.caBundle}", "--timeout=" + patience.String()},
		{"delete", "--filename", policy},
	} {
		out, err := w.kubectl(w.t.Context(), "", args...)
		w.check(err, "kubectl %s: %s", strings.Join(args, " "), out)
	}
}

// Not in parallel: what holds workloads is changed for the whole cluster.
func TestWebhookHoldsWhereTheAPIServerCannot(t *testing.T) {
	w := newWorkload(t, "Deployment", ownDeployment)
	pods := w.ready(2)
	w.holdsByWebhook()
	w.governed()
	w.run("set", "image", w.ref, "app="+newImage)
	w.isHeld("set image", w.stored(), 0)
	w.run("rollout", "resume", w.ref)
	w.isHeld("rollout resume", w.stored(), 0)
	w.input(w.manifest("web", "paused: false, "+ownDeployment, newImage), "replace")
	w.isHeld("replace", w.stored(), 0)
	w.settled()
	w.keeps(pods)

	w.run("patch", "inplaceupdatepolicy/web", "--type=merge", "--patch", `{"spec":{"podUpdatePolicy":"InPlaceOnly"}}`)
	w.scaleManager(0)
	resumed := func(ctx context.Context) (string, error) {
		return w.kubectl(ctx, "", "rollout", "resume", w.ref, "--namespace", w.namespace)
	}
	w.await("a refusal of what would replace pods", func(ctx context.Context) (bool, error) {
		out, err := w.kubectl(ctx, "", "patch", w.ref, "--namespace", w.namespace, "--patch", `{"spec":{"paused":false}}`, "--dry-run=server")
		return err != nil && strings.Contains(out, "it was not held: refit-manager could not be reached"), nil
	})
	if out, err := resumed(t.Context()); err == nil {
		t.Errorf("resumed without refit-manager, with InPlaceOnly: %s", out)
	}
	w.settled()
	w.keeps(pods)
	w.run("patch", "inplaceupdatepolicy/web", "--type=merge", "--patch", `{"spec":{"podUpdatePolicy":"InPlaceIfPossible"}}`)
	w.await("pods to be replaced", func(ctx context.Context) (bool, error) {
		out, err := resumed(ctx)
		return err == nil || strings.Contains(out, "is not paused"), nil
	})
	w.rolledOut()
	if got := imagesOf(w.ready(2)); slices.Contains(got, image) {
		t.Errorf("images after the rollout: %v", got)
	}
}
