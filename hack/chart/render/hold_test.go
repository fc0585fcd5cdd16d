package render_test

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// An API server before Kubernetes 1.36 has no MutatingAdmissionPolicy in v1: the installation would fail with it. There a webhook
// does the same, and gets its certificate. The notes say what users have to know.
func TestWorkloadsAreHeldByWhatTheAPIServerHas(t *testing.T) {
	t.Parallel()
	const (
		served    = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
		byOwner   = "are not held when their templates change: InPlaceUpdatePolicies need holdPolicy: ByOwner"
		byWebhook = "are held by a webhook of refit-manager"
		because   = ": the API server has no MutatingAdmissionPolicy in v1, which comes with Kubernetes 1.36.\nWhile refit-manager does not run"
	)
	for name, tc := range map[string]struct {
		served []string
		hold   string
		unused bool
		holds  string // policy, webhook or empty
		notes  string // empty: nothing of it
	}{
		"1.36":                   {served: []string{"apps/v1", served}, hold: "auto", holds: "policy"},
		"1.34":                   {served: []string{"apps/v1"}, hold: "auto", holds: "webhook", notes: byWebhook + because},
		"rendered for 1.36":      {served: []string{"apps/v1"}, hold: "policy", holds: "policy"},
		"1.36, by the webhook":   {served: []string{"apps/v1", served}, hold: "webhook", holds: "webhook", notes: byWebhook + ".\nWhile"},
		"1.36, by nothing":       {served: []string{"apps/v1", served}, hold: "none", notes: byOwner},
		"1.36, without policies": {served: []string{"apps/v1", served}, hold: "auto", unused: true},
		"1.34, without policies": {served: []string{"apps/v1"}, hold: "auto", unused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loaded, err := loader.Load(chart)
			if err != nil {
				t.Fatal(err)
			}
			capabilities := *common.DefaultCapabilities
			capabilities.APIVersions = tc.served
			given := map[string]any{
				"policies": map[string]any{"hold": tc.hold}, "manager": map[string]any{"features": map[string]any{"inPlaceUpdates": !tc.unused}},
			}
			values, err := util.ToRenderValues(loaded, given, common.ReleaseOptions{Name: "refit", Namespace: namespace, Revision: 1, IsInstall: true}, &capabilities)
			if err != nil {
				t.Fatal(err)
			}
			texts, err := engine.Engine{Strict: true}.RenderWithContext(t.Context(), loaded, values)
			if err != nil {
				t.Fatal(err)
			}
			for file, kind := range map[string]string{"hold/policy": "MutatingAdmissionPolicy", "hold-webhook/webhook": "MutatingWebhookConfiguration"} {
				if text := texts["refit/templates/"+file+".yaml"]; strings.Contains(text, "kind: "+kind+"\n") != (tc.holds != "" && strings.HasSuffix(file, tc.holds)) {
					t.Errorf("rendered %s:\n%s", file, text)
				}
			}
			if text := texts["refit/templates/manager/25-certificates.yaml"]; strings.Contains(text, "refit-manager-workloads") != (tc.holds == "webhook") {
				t.Errorf("webhooks with certificates:\n%s", text)
			}
			// A manager that only this webhook calls is ready when it can be called.
			if text := texts["refit/templates/manager/30-deployment.yaml"]; strings.Contains(text, "--hold-webhook=false") != (!tc.unused && tc.holds != "webhook") {
				t.Errorf("arguments of refit-manager:\n%s", text)
			}
			notes := texts["refit/templates/NOTES.txt"]
			if strings.Contains(notes, "held") != (tc.notes != "") || !strings.Contains(notes, tc.notes) {
				t.Errorf("notes:\n%s", notes)
			}
		})
	}
}
