package deploy_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	rolloutworkload "github.com/refit-project/refit/rollout/workload"
)

// review returns the update as the API server evaluates it, with another object if stored is not nil.
func (w write) review(t *testing.T, stored runtime.Object) review {
	t.Helper()
	if stored == nil {
		stored = w.object(t, w.after)
	}
	return review{
		user: w.user, operation: admission.Update, name: "web", kind: w.kind, params: w.policy(),
		oldObject: text(t, w.object(t, w.before)), object: text(t, stored),
	}
}

func (w write) callsWebhook(t *testing.T) bool {
	t.Helper()
	configuration := documents[admissionregistrationv1.MutatingWebhookConfiguration](t, "hold-webhook/*.yaml", "MutatingWebhookConfiguration")[0]
	r := w.review(t, nil)
	r.params = "" // the API server does not know the policies when it calls a webhook
	called, _ := (policy{conditions: configuration.Webhooks[0].MatchConditions}).evaluate(t, r)
	return called
}

// becomesByWebhook checks that the webhook stores the same as the policy, and what is refused while it cannot be reached.
func (w write) becomesByWebhook(t *testing.T, want string) {
	t.Helper()
	var p v1alpha1.InPlaceUpdatePolicy
	if err := json.Unmarshal([]byte(w.policy()), &p); err != nil {
		t.Fatal(err)
	}
	before, after := w.object(t, w.before).(metav1.Object), w.object(t, w.after)
	if w.user != byManager { // which the webhook does not look at
		rolloutworkload.Hold([]v1alpha1.InPlaceUpdatePolicy{p}, before, after.(metav1.Object))
	}
	wanted := w.object(t, want)
	if diff := cmp.Diff(wanted, after, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("by the webhook (-want +stored):\n%s", diff)
	}
	changes := !cmp.Equal(w.object(t, w.after), wanted, cmpopts.EquateEmpty())
	if changes && !w.callsWebhook(t) {
		t.Error("the webhook is not called")
	}
	required := shipped(t, "hold-webhook/*.yaml", "refit-hold-required")
	if _, refused := required.evaluate(t, w.review(t, nil)); refused != "" {
		t.Errorf("refused, although pods may be replaced: %s", refused)
	}
	w.spec += `,"podUpdatePolicy":"InPlaceOnly"`
	if _, refused := required.evaluate(t, w.review(t, nil)); changes != (refused != "") {
		t.Errorf("InPlaceOnly, not held: %t, refused: %q", changes, refused)
	}
	if _, refused := required.evaluate(t, w.review(t, wanted)); refused != "" {
		t.Errorf("InPlaceOnly, as it is stored: refused: %s", refused)
	}
}

// The webhook is for all workloads of a cluster: writes that are never held do not wait for it.
func TestWebhookIsCalledOnlyForWritesThatMayBeHeld(t *testing.T) {
	t.Parallel()
	const scaled = `"replicas":2,`
	for name, tc := range map[string]struct {
		write

		called bool
	}{
		"image of a Deployment":   {write{kind: "Deployment", before: workload("", "", "a"), after: workload("", "", "b")}, true},
		"image of a StatefulSet":  {write{kind: "StatefulSet", before: workload("", zero, "a"), after: workload("", zero, "b")}, true},
		"image of a DaemonSet":    {write{kind: "DaemonSet", before: workload("", surge, "a"), after: workload("", surge, "b")}, true},
		"held Deployment":         {write{kind: "Deployment", before: workload(held, paused, "a"), after: workload(held, paused+scaled, "a")}, true},
		"scaled Deployment":       {write{kind: "Deployment", before: workload("", "", "a"), after: workload("", scaled, "a")}, false},
		"scaled StatefulSet":      {write{kind: "StatefulSet", before: workload("", zero, "a"), after: workload("", scaled+zero, "a")}, false},
		"labels":                  {write{kind: "Deployment", before: workload("", "", "a"), after: workload(other, "", "a")}, false},
		"restart":                 {write{kind: "DaemonSet", before: workload("", surge, "a"), after: workload("", surge, "a", restarted)}, false},
		"paused by its owner":     {write{kind: "Deployment", before: workload("", paused, "a"), after: workload("", paused, "b")}, false},
		"released by the manager": {write{kind: "Deployment", user: byManager, before: workload(held, paused, "a"), after: workload("", "", "a")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.user == "" {
				tc.user = byAlice
			}
			if called := tc.callsWebhook(t); called != tc.called {
				t.Errorf("called: %t", called)
			}
		})
	}
}
