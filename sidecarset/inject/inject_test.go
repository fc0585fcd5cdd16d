package inject_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/inject"
)

func TestNothingIsWrittenWithoutASidecarSet(t *testing.T) {
	t.Parallel()
	result, err := inject.Apply([]byte(`{"not": "even a pod"`), inject.Plan{}, now)
	if err != nil || len(result.Patch) > 0 {
		t.Errorf("got %+v, %v", result, err)
	}
}

// The order of the SidecarSets in a cache must not decide the order of containers.
func TestTheOrderOfSidecarSetsDoesNotMatter(t *testing.T) {
	t.Parallel()
	in := read(t, "testdata/order.yaml")
	plan := planOf(t, in)
	first, err := inject.Apply(in.Pod, plan, now)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(plan.Sets)
	second, err := inject.Apply(in.Pod, plan, now)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := string(apply(t, in.Pod, first.Patch)), string(apply(t, in.Pod, second.Patch)); a != b {
		t.Errorf("%s\n%s", a, b)
	}
}

// FuzzApply: whatever the pod and the SidecarSet are, the outcome is a pod with unique names that a second injection does not
// change, or a refusal.
func FuzzApply(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		in := input{}
		if err := unmarshal(data, &in); err != nil || len(in.SidecarSets) == 0 {
			continue
		}
		set, err := json.Marshal(in.SidecarSets[0])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(set, []byte(in.Pod))
	}
	f.Fuzz(func(t *testing.T, setJSON, pod []byte) {
		var set v1beta1.SidecarSet
		if json.Unmarshal(setJSON, &set) != nil {
			return
		}
		compiled, err := inject.Compile(&set, "")
		if err != nil {
			return
		}
		plan := inject.Plan{Sets: []*inject.Set{compiled}}
		result, err := inject.Apply(pod, plan, now)
		if err != nil {
			return
		}
		var before, after corev1.Pod
		if json.Unmarshal(pod, &before) != nil || duplicated(&before) || clashing(&set) || before.Name == "" {
			return
		}
		patched := apply(t, withParents(t, pod), result.Patch)
		if err := json.Unmarshal(patched, &after); err != nil {
			t.Fatal(err)
		}
		if duplicated(&after) {
			t.Errorf("two containers have one name: %s", patched)
		}
		again, err := inject.Apply(patched, plan, now)
		var refusal *inject.Refusal
		if err != nil && !errors.As(err, &refusal) {
			t.Fatal(err)
		}
		if err == nil && len(again.Patch) > 0 {
			t.Errorf("a second injection writes %+v into %s", again.Patch, patched)
		}
	})
}

func duplicated(pod *corev1.Pod) bool {
	seen := map[string]bool{}
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for _, c := range list {
			if seen[c.Name] {
				return true
			}
			seen[c.Name] = true
		}
	}
	return false
}

// clashing SidecarSets are refused by admission.
func clashing(set *v1beta1.SidecarSet) bool {
	seen := map[string]bool{}
	for i := range set.Spec.InitContainers {
		for _, name := range inject.ContainerNames(&set.Spec.InitContainers[i], true) {
			if seen[name] {
				return true
			}
			seen[name] = true
		}
	}
	for i := range set.Spec.Containers {
		for _, name := range inject.ContainerNames(&set.Spec.Containers[i], false) {
			if seen[name] {
				return true
			}
			seen[name] = true
		}
	}
	return false
}
