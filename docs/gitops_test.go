package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/test/kit/markdown"
)

// Flux evaluates the expressions with the fields of the object as variables; one that cannot be evaluated is not true.
func TestExpressionsForFluxSayHowObjectsAre(t *testing.T) {
	t.Parallel()
	blocks, err := markdown.Read("how-to/gitops.md")
	if err != nil {
		t.Fatal(err)
	}
	var kustomization struct {
		Spec struct {
			HealthCheckExprs []struct{ APIVersion, Kind, Current, Failed string } `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	for _, block := range blocks {
		if block.Value == t.Name() {
			if err := yaml.Unmarshal([]byte(block.Text), &kustomization); err != nil {
				t.Fatal(err)
			}
		}
	}
	files, err := filepath.Glob("testdata/gitops/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := yaml.Unmarshal(content, &object); err != nil {
			t.Fatal(err)
		}
		how, _, _ := strings.Cut(filepath.Base(file), "-")
		for _, check := range kustomization.Spec.HealthCheckExprs {
			if check.Kind != object["kind"] {
				continue
			}
			checked++
			if got, want := evaluates(t, check.Failed, object), how == "degraded"; got != want {
				t.Errorf("%s: failed is %t, want %t", file, got, want)
			}
			// Flux does not know of suspended objects: it would wait for them until its timeout. Others may stay at their partition.
			want := how == "healthy" || how == "suspended" && check.Kind != "RestartRollout"
			if got := evaluates(t, check.Current, object); got != want {
				t.Errorf("%s: current is %t, want %t", file, got, want)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d objects were checked", checked)
	}
}

func evaluates(t *testing.T, expression string, object map[string]any) bool {
	t.Helper()
	variables := []cel.EnvOption{}
	for _, name := range []string{"metadata", "spec", "status"} {
		variables = append(variables, cel.Variable(name, cel.DynType))
	}
	environment, err := cel.NewEnv(variables...)
	if err != nil {
		t.Fatal(err)
	}
	tree, issues := environment.Compile(expression)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expression, issues.Err())
	}
	program, err := environment.Program(tree)
	if err != nil {
		t.Fatal(err)
	}
	result, _, err := program.Eval(object)
	if err != nil {
		return false
	}
	return result.Value() == true
}
