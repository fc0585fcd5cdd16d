package render_test

import (
	"fmt"
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

// Every object has the annotations for all objects beside its own, and the pods have not: another value would replace them.
func TestCommonAnnotations(t *testing.T) {
	t.Parallel()
	const values = "{networkPolicy: {enabled: true}, metrics: {podMonitor: {enabled: true}, prometheusRule: {enabled: true}, dashboard: {enabled: true}}, sidecar: {namespaces: [shop]}, " +
		"manager: {serviceAccount: {annotations: {role: pull}}}, namespace: {create: true}, commonAnnotations: {team: a}, webhook: {certificates: {mode: %s, self: {jobSuffix: %t}}}}"
	for _, tc := range []struct {
		mode   string
		suffix bool
	}{{"self", true}, {"self", false}, {"certManager", true}} {
		objects, err := rendered(t, fmt.Sprintf(values, tc.mode, tc.suffix))
		if err != nil || len(objects) < 80 {
			t.Fatalf("%d objects, %v", len(objects), err)
		}
		for name := range objects {
			if got := objects.at(t, name+" {.metadata.annotations.team}"); got != "a" {
				t.Errorf("%s, certificates %s: the annotation is %q", name, tc.mode, got)
			}
		}
		for _, pods := range []string{"DaemonSet/refit-daemon", "Deployment/refit-manager"} {
			if got := objects.at(t, pods+" {.spec.template.metadata.annotations.team}"); got != "" {
				t.Errorf("pods of %s have the annotation", pods)
			}
		}
		if got := objects.at(t, "ServiceAccount/refit-manager {.metadata.annotations}"); got != `{"role":"pull","team":"a"}` {
			t.Errorf("annotations of the account: %s", got)
		}
		if got := objects.at(t, "Namespace/kruise-daemon-config {.metadata.annotations}"); got != `{"helm.sh/resource-policy":"keep","team":"a"}` {
			t.Errorf("annotations of the namespace: %s", got)
		}
	}
}
