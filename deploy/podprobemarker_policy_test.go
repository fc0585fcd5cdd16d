package deploy_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/admission"
)

func TestMarksOfAPodProbeMarkerAreLabelsAndAnnotationsOfKubernetes(t *testing.T) {
	t.Parallel()
	p := shipped(t, "manager/40-*.yaml", "refit-podprobemarker")
	review := func(t *testing.T, marks string) string {
		t.Helper()
		_, refused := p.evaluate(t, review{operation: admission.Create, object: fmt.Sprintf(
			`{"apiVersion":"apps.kruise.io/v1beta1","kind":"PodProbeMarker","metadata":{"name":"m"},"spec":{"selector":{"matchLabels":{"app":"game"}},`+
				`"probes":[{"name":"idle","containerName":"main","probe":{"grpc":{"port":1}},"markerPolicy":[{"state":"Succeeded",%s}]}]}}`, marks)})
		return refused
	}
	long := strings.Repeat("a", 63)
	for _, text := range []string{
		"idle", "a", "Idle_1.x", "example.com/idle", "a-b.example.com/x", long, long + "a", "example.com/" + long, "example.com/" + long + "a",
		strings.Repeat(long+".", 3) + long[:61] + "/a", strings.Repeat(long+".", 3) + long[:62] + "/a",
		"", "/", "a/", "/a", "a/b/c", "a b", "-a", "a-", "Example.com/idle", "example..com/idle", ".com/a", "a\n", "ä",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			for mark, invalid := range map[string]bool{
				fmt.Sprintf(`"labels":{%q:"yes"}`, text):              len(validation.IsQualifiedName(text)) > 0,
				fmt.Sprintf(`"labels":{"example.com/idle":%q}`, text): len(validation.IsValidLabelValue(text)) > 0,
				fmt.Sprintf(`"annotations":{%q:"x y"}`, text):         len(validation.IsQualifiedName(strings.ToLower(text))) > 0,
			} {
				if refused := review(t, mark); invalid != (refused != "") {
					t.Errorf("%s: %q, want refused %t", mark, refused, invalid)
				}
			}
		})
	}
}
