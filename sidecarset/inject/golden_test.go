package inject_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/inject"
	"github.com/refit-project/refit/test/kit/golden"
)

var now = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

// input is a file of testdata: what is injected into what.
type input struct {
	Says        string // what a user would notice
	SidecarSets []v1beta1.SidecarSet
	Skipped     map[string]string
	Pod         json.RawMessage
}

// Each file of testdata is injected, and the outcome compared with its golden file: the pod, or why it is refused. A second call in
// the same request has to leave it as it is, and a pod that is created from its manifest has to be the same.
func TestInjection(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			in := read(t, file)
			got := outcome(t, in)
			t.Log(in.Says)
			golden.Check(t, strings.TrimSuffix(file, ".yaml")+".golden", got)
		})
	}
}

func outcome(t *testing.T, in input) string {
	t.Helper()
	plan := planOf(t, in)
	sent := request(t, in.Pod)
	result, err := inject.Apply(sent, plan, now)
	var refusal *inject.Refusal
	if errors.As(err, &refusal) {
		return "refused: " + err.Error() + "\n"
	}
	if err != nil {
		t.Fatal(err)
	}
	pod := apply(t, sent, result.Patch)
	again, err := inject.Apply(pod, plan, now.Add(time.Hour))
	if err != nil || len(again.Patch) > 0 {
		t.Errorf("a second call changes %+v, %v", again.Patch, err)
	}
	stored := withoutManagedFields(t, pod)
	fromManifest, err := inject.Apply(request(t, stored), plan, now.Add(time.Hour))
	for _, operation := range fromManifest.Patch {
		if operation.Path != "/metadata/annotations" {
			t.Errorf("a pod from the manifest is changed: %+v", operation)
		}
	}
	if err != nil {
		t.Errorf("a pod from the manifest is refused: %v", err)
	}
	text, err := yaml.JSONToYAML(stored)
	if err != nil {
		t.Fatal(err)
	}
	var notes strings.Builder
	for _, o := range result.Patch {
		fmt.Fprintf(&notes, "# writes %s\n", o.Path)
	}
	for _, w := range result.Warnings {
		fmt.Fprintf(&notes, "# warning: %s\n", w)
	}
	return notes.String() + string(text)
}

func planOf(t *testing.T, in input) inject.Plan {
	t.Helper()
	plan := inject.Plan{Skipped: in.Skipped}
	for i := range in.SidecarSets {
		set, err := inject.Compile(&in.SidecarSets[i], in.SidecarSets[i].Name+"-1")
		if err != nil {
			t.Fatal(err)
		}
		plan.Sets = append(plan.Sets, set)
	}
	return plan
}

func apply(t *testing.T, pod []byte, operations []inject.Operation) []byte {
	t.Helper()
	if len(operations) == 0 {
		return pod
	}
	text, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := patch.Apply(pod)
	if err != nil {
		t.Fatalf("apply %s: %v", text, err)
	}
	return patched
}

func read(t *testing.T, file string) input {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var in input
	if err := yaml.UnmarshalStrict(data, &in); err != nil {
		t.Fatal(err)
	}
	return in
}

func unmarshal(data []byte, in *input) error { return yaml.UnmarshalStrict(data, in) }

// withParents adds metadata and spec to a pod: the API server never sends one without.
func withParents(t *testing.T, pod []byte) []byte {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(pod, &object); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"metadata", "spec"} {
		if object[key] == nil {
			object[key] = map[string]any{}
		}
	}
	return encoded(t, object)
}

// request is a pod as the API server sends it to the webhook: with managed fields that have what the client has sent.
func request(t *testing.T, pod []byte) []byte {
	t.Helper()
	var parsed corev1.Pod
	if err := json.Unmarshal(pod, &parsed); err != nil {
		t.Fatal(err)
	}
	named := func(names map[string]any, name string) {
		names[`k:{"name":`+strconv.Quote(name)+`}`] = map[string]any{}
	}
	annotations, containers, initContainers, volumes := map[string]any{}, map[string]any{}, map[string]any{}, map[string]any{}
	for key := range parsed.Annotations {
		annotations["f:"+key] = map[string]any{}
	}
	for i := range parsed.Spec.Containers {
		named(containers, parsed.Spec.Containers[i].Name)
	}
	for i := range parsed.Spec.InitContainers {
		named(initContainers, parsed.Spec.InitContainers[i].Name)
	}
	for i := range parsed.Spec.Volumes {
		named(volumes, parsed.Spec.Volumes[i].Name)
	}
	var object map[string]any
	if err := json.Unmarshal(withParents(t, pod), &object); err != nil {
		t.Fatal(err)
	}
	object["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{"manager": "kubectl", "operation": "Update", "fieldsV1": map[string]any{
		"f:metadata": map[string]any{"f:annotations": annotations},
		"f:spec":     map[string]any{"f:containers": containers, "f:initContainers": initContainers, "f:volumes": volumes},
	}}}
	return encoded(t, object)
}

func withoutManagedFields(t *testing.T, pod []byte) []byte {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(pod, &object); err != nil {
		t.Fatal(err)
	}
	delete(object["metadata"].(map[string]any), "managedFields")
	return encoded(t, object)
}

func encoded(t *testing.T, object any) []byte {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
