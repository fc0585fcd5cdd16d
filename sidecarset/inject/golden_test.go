package inject_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/inject"
)

var update = flag.Bool("update", false, "write the golden files")

var now = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

// input is a file of testdata: what is injected into what.
type input struct {
	Says        string // what a user would notice
	SidecarSets []v1beta1.SidecarSet
	Skipped     map[string]string
	Pod         json.RawMessage
}

// Each file of testdata is injected, and the outcome compared with its golden file: the pod, or why it is refused. A second
// injection of the outcome has to leave it as it is.
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
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", in.Says, diff)
			}
		})
	}
}

func outcome(t *testing.T, in input) string {
	t.Helper()
	plan := planOf(t, in)
	result, err := inject.Apply(in.Pod, plan, now)
	var refusal *inject.Refusal
	if errors.As(err, &refusal) {
		return "refused: " + err.Error() + "\n"
	}
	if err != nil {
		t.Fatal(err)
	}
	pod := apply(t, in.Pod, result.Patch)
	again, err := inject.Apply(pod, plan, now.Add(time.Hour))
	if err != nil || len(again.Patch) > 0 {
		t.Errorf("a second injection changes %+v, %v", again.Patch, err)
	}
	text, err := yaml.JSONToYAML(pod)
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
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
