package deploy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"k8s.io/apiserver/pkg/admission"
)

// without returns a policy of the chart as it is with some features turned off. What the chart includes for a feature, as
// refit.sidecarSets, is empty then.
func without(t *testing.T, file, name string, off ...string) policy {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("chart", "templates", "manager", file))
	if err != nil {
		t.Fatal(err)
	}
	include := func(of string, _ any) string {
		if feature := strings.TrimPrefix(of, "refit."); feature == "labels" || slices.Contains(off, feature) {
			return ""
		}
		return "true"
	}
	parsed, err := template.New(file).Funcs(template.FuncMap{"include": include}).Parse(string(content))
	if err != nil {
		t.Fatal(err)
	}
	var rendered bytes.Buffer
	if err := parsed.Execute(&rendered, map[string]any{"Values": map[string]any{"policies": map[string]any{"enabled": true}}}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), file)
	if err := os.WriteFile(path, rendered.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return shipped(t, path, name)
}

// Whoever has taken refit-manager over must not do what only a feature needs that the administrator has turned off.
func TestManagerMayNotDoWhatAFeatureThatIsOffNeeds(t *testing.T) {
	t.Parallel()
	owned := func(name, label, owner string) string {
		return `{"apiVersion":"apps.kruise.io/v1beta1","kind":"ContainerRecreateRequest","metadata":{"name":"` + name + `",` + label + `"ownerReferences":[` + owner + `]},"spec":{"podName":"web-0"}}`
	}
	const ofRefit = `{"apiVersion":"refit.dev/v1alpha1","kind":"KIND","name":"web","uid":"u","controller":true}`
	requests := map[string]string{ // by the feature that creates them
		"restartRollouts": owned("web-1", `"labels":{"refit.dev/rollout-uid":"u"},`, strings.Replace(ofRefit, "KIND", "RestartRollout", 1)),
		"inPlaceUpdates":  owned("web-1", "", strings.Replace(ofRefit, "KIND", "InPlaceUpdatePolicy", 1)),
		"requests":        owned("sidecar-termination-u", "", `{"apiVersion":"v1","kind":"Pod","name":"web-0","uid":"u"}`),
	}
	for _, off := range [][]string{nil, {"restartRollouts"}, {"inPlaceUpdates"}, {"requests"}, {"restartRollouts", "inPlaceUpdates", "requests"}} {
		may := without(t, "42-rollout-policy.yaml", "refit-manager-requests", off...)
		for feature, request := range requests {
			if _, refused := may.evaluate(t, review{user: account, operation: admission.Create, object: request}); (refused != "") != slices.Contains(off, feature) {
				t.Errorf("without %v, a request of %s: refused %q", off, feature, refused)
			}
		}
	}
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{
		"initContainers":[{"name":"mesh","image":"mesh:1","env":[{"name":"IS_INJECTED","value":"true"}]}],
		"containers":[{"name":"log","image":"log:1","env":[{"name":"IS_INJECTED","value":"true"}],"resources":{"limits":{"cpu":"2"}}}]}}`
	for _, off := range [][]string{nil, {"sidecarSets"}} {
		may := without(t, "41-pod-policy.yaml", "refit-manager-pods", off...)
		for _, edit := range [][]string{{"log:1", "log:2"}, {"mesh:1", "mesh:2"}, {`"cpu":"2"`, `"cpu":"3"`}} {
			after := strings.NewReplacer(edit...).Replace(pod)
			_, refused := may.evaluate(t, review{user: account, operation: admission.Update, oldObject: pod, object: after})
			if (refused != "") != (off != nil) || off != nil && !strings.Contains(refused, "no images and resources") {
				t.Errorf("without %v, %v: refused %q", off, edit, refused)
			}
		}
	}
}
