package inject_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/inject"
)

// A pod may be in the hands of two injectors: the webhook and policies of the API server.
func TestRecordOfASidecarSetThatAnotherInjectsIsKept(t *testing.T) {
	t.Parallel()
	in := read(t, "testdata/manifest-of-another-pod.yaml")
	for name, tt := range map[string]struct {
		keep []string
		want bool
	}{
		"kept":                   {[]string{"gone"}, true},
		"another is to be kept":  {[]string{"absent"}, false},
		"nothing is to be kept":  {nil, false},
		"kept beside an unknown": {[]string{"absent", "gone"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := planOf(t, in)
			plan.Keep = tt.keep
			result, err := inject.Apply(in.Pod, plan, now)
			if err != nil {
				t.Fatal(err)
			}
			var pod corev1.Pod
			if err := json.Unmarshal(apply(t, in.Pod, result.Patch), &pod); err != nil {
				t.Fatal(err)
			}
			kept := annotation.Of(&pod, "gone")
			if (kept != nil) != tt.want || kept != nil && (kept.Hash != "old" || kept.UpdateTimestamp.UTC().Format("2006-01-02") != "2026-01-02" || len(kept.SidecarList) != 1) {
				t.Errorf("record %+v, want one: %t", kept, tt.want)
			}
			if listed := strings.Contains(pod.Annotations["kruise.io/sidecarset-injected-list"], "gone"); listed != tt.want {
				t.Errorf("list of SidecarSets: %s", pod.Annotations["kruise.io/sidecarset-injected-list"])
			}
		})
	}
}

// What is no pod is no reason to refuse one: the API server says what is wrong with it.
func TestUnreadablePodIsNotRefusedByASidecarSet(t *testing.T) {
	t.Parallel()
	plan := planOf(t, read(t, "testdata/order.yaml"))
	for _, pod := range []string{`{"spec":`, `{"spec":{"containers":"app"}}`} {
		result, err := inject.Apply([]byte(pod), plan, now)
		var refusal *inject.Refusal
		if err == nil || errors.As(err, &refusal) || len(result.Patch) > 0 {
			t.Errorf("%s: %+v, %v", pod, result, err)
		}
	}
}

func TestSidecarSetsThatCannotBeCompiledNameTheField(t *testing.T) {
	t.Parallel()
	policy := &v1beta1.ResourcesPolicy{TargetContainersMode: "max", TargetContainersNameRegex: "("}
	for field, spec := range map[string]v1beta1.SidecarSetSpec{
		"spec.containers[1].resourcesPolicy":     {Containers: []v1beta1.SidecarContainer{{}, {ResourcesPolicy: policy}}},
		"spec.initContainers[0].resourcesPolicy": {InitContainers: []v1beta1.SidecarContainer{{ResourcesPolicy: policy}}},
		"spec.patchContainers[1].nameRegex":      {PatchContainers: []v1beta1.SidecarSetPatchContainer{{NameRegex: "app"}, {NameRegex: "("}}},
	} {
		if _, err := inject.Compile(&v1beta1.SidecarSet{Spec: spec}, ""); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%v, want an error about %s", err, field)
		}
	}
}
