package render_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every object has the usual labels of a chart, and the pods have not: a new version of the chart would replace them.
func TestStandardLabels(t *testing.T) {
	t.Parallel()
	const values = "{networkPolicy: {enabled: true}, metrics: {podMonitor: {enabled: true}, prometheusRule: {enabled: true}, dashboard: {enabled: true}}, sidecar: {namespaces: [shop]}, commonLabels: {team: a}}"
	objects, err := rendered(t, values)
	if err != nil || len(objects) < 80 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	want := map[string]string{
		"helm.sh/chart": "refit-0.1.0", "app.kubernetes.io/instance": "refit", "app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/version": "v0.1.0", "team": "a",
	}
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		metadata, _ := objects[name]["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		got := map[string]string{}
		for key := range want {
			got[key], _ = labels[key].(string)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, pods := range []string{"DaemonSet/refit-daemon {.spec.template", "Deployment/refit-manager {.spec.template", "CronJob/refit-certificates {.spec.jobTemplate.spec.template"} {
		for _, label := range []string{`helm\.sh/chart`, `app\.kubernetes\.io/version`} {
			if got := objects.at(t, pods+".metadata.labels."+label+"}"); got != "" {
				t.Errorf("%s has the label %s: %s", pods, label, got)
			}
		}
	}

	without, err := rendered(t, "standardLabels: false")
	if err != nil {
		t.Fatal(err)
	}
	if got := without.at(t, "ServiceAccount/refit-daemon {.metadata.labels}"); got != "" {
		t.Errorf("labels without standardLabels: %s", got)
	}
}
