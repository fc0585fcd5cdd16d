package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// probeRule replaces a part of a valid object. All words of Want are in the refusal; without any it is accepted.
type probeRule struct {
	Name, Old, To string
	Many          struct {
		Text  string
		Times int
	}
	Update bool
	Want   []string
}

func readYAML(t *testing.T, file string, into any) string {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(file))
	if err == nil {
		err = yaml.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return string(data)
}

// TestProbeObjectsAreChecked breaks every rule of PodProbeMarker and NodePodProbe. The API server refuses without asking
// anybody, with the field and the rule.
func TestProbeObjectsAreChecked(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	const valid = "../../deploy/crd/testdata/"
	for file, object := range map[string]string{
		valid + "podprobemarker_rules.yaml":   valid + "podprobemarker.yaml",
		valid + "nodepodprobe_rules.yaml":     valid + "nodepodprobe.yaml",
		"testdata/podprobemarker_policy.yaml": valid + "podprobemarker.yaml",
	} {
		var rules []probeRule
		readYAML(t, file, &rules)
		stored := &unstructured.Unstructured{}
		text := readYAML(t, object, stored)
		stored.SetNamespace(s.namespace)
		stored.SetName(strings.TrimSuffix(filepath.Base(file), ".yaml") + "-stored")
		stored.SetName(strings.ReplaceAll(stored.GetName(), "_", "-"))
		if stored.GetKind() == "PodProbeMarker" {
			s.check(s.Create(t.Context(), stored), "create the valid object of %s", file)
		}
		for _, r := range rules {
			to := strings.Replace(r.To, "$MANY", strings.Repeat(r.Many.Text, r.Many.Times), 1)
			versions := []string{"v1alpha1"}
			if strings.HasPrefix(file, "testdata/") { // the schemas are compared by unit tests, the policy is for both
				versions = append(versions, "v1beta1")
			}
			for _, version := range versions {
				changed := strings.Replace(strings.Replace(text, r.Old, to, 1), "apps.kruise.io/v1alpha1", "apps.kruise.io/"+version, 1)
				err := s.submit(changed, stored, r.Update)
				if len(r.Want) == 0 && err != nil {
					t.Errorf("%s, %s, %s: refused: %.500v", filepath.Base(file), version, r.Name, err)
				}
				if len(r.Want) > 0 && (err == nil || !containsAll(err.Error(), r.Want)) {
					t.Errorf("%s, %s, %s: answer %.500v, want a refusal with %q", filepath.Base(file), version, r.Name, err, r.Want)
				}
			}
		}
	}
}

// submit has an object checked without storing it: as a new one, or in the place of the stored one.
func (s *fixture) submit(text string, stored client.Object, update bool) error {
	s.t.Helper()
	object := &unstructured.Unstructured{}
	s.check(yaml.Unmarshal([]byte(text), object), "read %s", text)
	object.SetNamespace(s.namespace)
	if !update {
		return s.Create(s.t.Context(), object, client.DryRunAll)
	}
	object.SetName(stored.GetName())
	patch := client.MergeFrom(stored.DeepCopyObject().(client.Object))
	object.SetResourceVersion(stored.GetResourceVersion())
	object.SetUID(stored.GetUID())
	return s.Patch(s.t.Context(), object, patch, client.DryRunAll)
}
