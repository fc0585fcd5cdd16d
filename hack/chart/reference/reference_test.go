package reference_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hack/chart/reference"
)

func TestREADMEIsUpToDate(t *testing.T) {
	t.Parallel()
	chart := filepath.Join("..", "..", "..", "deploy", "chart")
	want, err := reference.README(chart)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(chart, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("make generate has not been run (-made +there):\n%s", diff)
	}
}

func TestEveryValueHasAMeaningAndAType(t *testing.T) {
	t.Parallel()
	const values, types = "# -- How many.\nsize: 3\nparts:\n  # -- Of what kind.\n  # One of two.\n  kind: a\n",
		`{"properties":{"size":{"type":"integer"},"parts":{"type":"object","properties":{"kind":{"enum":["a","b"]}}}}}`
	for name, tc := range map[string]struct{ values, types, want string }{
		"complete":          {values, types, ""},
		"without a comment": {strings.Replace(values, "# -- How many.\n", "", 1), types, "size has no comment"},
		"without a type":    {values + "# -- New.\nnew: 1\n", types, "new is not in values.schema.json"},
		"without a default": {values, strings.Replace(types, `"size"`, `"old":{"type":"string"},"size"`, 1), "old of values.schema.json is not in values.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			for file, text := range map[string]string{"values.yaml": tc.values, "values.schema.json": tc.types} {
				if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := reference.Values(folder)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v, want %q", err, tc.want)
				}
				return
			}
			want := []reference.Value{
				{Key: "size", Type: "integer", Default: "3", Description: "How many."},
				{Key: "parts.kind", Type: "`a`, `b`", Default: `"a"`, Description: "Of what kind. One of two."},
			}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
