package render_test

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// An API server before Kubernetes 1.36 has no MutatingAdmissionPolicy in v1: the installation would fail with it, and the notes
// say what users have to do.
func TestWorkloadsAreHeldWhereTheAPIServerCan(t *testing.T) {
	t.Parallel()
	const policy = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
	for name, tc := range map[string]struct {
		served  []string
		hold    any
		feature bool
		held    bool
		notes   string // empty: nothing of it
	}{
		"1.36":             {served: []string{"apps/v1", policy}, hold: "auto", feature: true, held: true},
		"1.34":             {served: []string{"apps/v1"}, hold: "auto", feature: true, notes: "comes with Kubernetes 1.36.\nInPlaceUpdatePolicies need holdPolicy: ByOwner"},
		"rendered for it":  {served: []string{"apps/v1"}, hold: true, feature: true, held: true},
		"1.36, turned off": {served: []string{"apps/v1", policy}, hold: false, feature: true, notes: "templates change.\nInPlaceUpdatePolicies need holdPolicy: ByOwner"},
		"1.36, not used":   {served: []string{"apps/v1", policy}, hold: "auto"},
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
				"policies": map[string]any{"hold": tc.hold}, "manager": map[string]any{"features": map[string]any{"inPlaceUpdates": tc.feature}},
			}
			values, err := util.ToRenderValues(loaded, given, common.ReleaseOptions{Name: "refit", Namespace: namespace, Revision: 1, IsInstall: true}, &capabilities)
			if err != nil {
				t.Fatal(err)
			}
			texts, err := engine.Engine{Strict: true}.RenderWithContext(t.Context(), loaded, values)
			if err != nil {
				t.Fatal(err)
			}
			if text := texts["refit/templates/hold/policy.yaml"]; strings.Contains(text, "kind: MutatingAdmissionPolicy") != tc.held {
				t.Errorf("rendered:\n%s", text)
			}
			notes := texts["refit/templates/NOTES.txt"]
			if strings.Contains(notes, "ByOwner") != (tc.notes != "") || !strings.Contains(notes, tc.notes) {
				t.Errorf("notes:\n%s", notes)
			}
		})
	}
}
