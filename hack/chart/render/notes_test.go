package render_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/hack/chart/render"
)

// The commands of the notes work in their order: the plugin comes from somewhere, and the test of the release follows what it needs.
func TestNotesNameWhatHasToBeThere(t *testing.T) {
	t.Parallel()
	const (
		plugin = "https://github.com/refit-project/refit/releases"
		job    = "kubectl wait job --selector=app.kubernetes.io/name=refit-certificates --for=condition=Complete"
		daemon = "kubectl rollout status daemonset/refit-daemon"
		deploy = "kubectl rollout status deployment/refit-manager"
		test   = "\n  helm test refit --namespace repairs\n"
	)
	for name, tc := range map[string]struct {
		values         string
		want, unwanted []string
	}{
		"defaults":                     {want: []string{plugin, job, daemon, deploy, test}},
		"certificates of cert-manager": {values: "webhook: {certificates: {mode: certManager}}", want: []string{plugin, daemon, deploy, test}, unwanted: []string{job}},
		"in place of kruise-daemon":    {values: "openkruise: {mode: daemonOnly}", want: []string{daemon, test}, unwanted: []string{plugin, job, deploy}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := map[string]any{}
			if err := yaml.UnmarshalStrict([]byte(tc.values), &given); err != nil {
				t.Fatal(err)
			}
			files, err := render.Chart(t.Context(), chart, render.Release{Namespace: namespace, Values: given})
			if err != nil {
				t.Fatal(err)
			}
			notes, at := files["NOTES.txt"], 0
			for _, want := range tc.want {
				i := strings.Index(notes[at:], want)
				if i < 0 {
					t.Fatalf("no %q, or not in its place:\n%s", want, notes)
				}
				at += i
			}
			for _, unwanted := range tc.unwanted {
				if strings.Contains(notes, unwanted) {
					t.Errorf("%q in:\n%s", unwanted, notes)
				}
			}
		})
	}
}
