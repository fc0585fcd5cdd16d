package render_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/hack/chart/render"
)

var chart = filepath.Join("..", "..", "..", "deploy", "chart")

const namespace = "repairs"

// objects by KIND/NAME, as DaemonSet/refit-daemon; objects of other namespaces than the release's by NAMESPACE/KIND/NAME.
type objects map[string]map[string]any

func rendered(t *testing.T, values string) (objects, error) {
	t.Helper()
	given := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	texts, err := render.Chart(t.Context(), chart, render.Release{Namespace: namespace, Values: given})
	found := objects{}
	for path, text := range texts {
		if filepath.Ext(path) != ".yaml" {
			continue
		}
		for document := range bytes.SplitSeq([]byte("\n"+text), []byte("\n---\n")) {
			found.add(t, path, document)
		}
	}
	return found, err
}

// decoded are the objects of documents, by their text. Most are the same with all values, and the CRDs are long.
// Nothing changes them.
var decoded sync.Map

// decode returns the object of a document. Where its type is at hand, unknown fields are an error.
func decode(t *testing.T, path string, document []byte) map[string]any {
	t.Helper()
	if object, found := decoded.Load(string(document)); found {
		return object.(map[string]any)
	}
	object := map[string]any{}
	if err := yaml.UnmarshalStrict(document, &object); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, document)
	}
	if len(object) > 0 {
		kind := schema.FromAPIVersionAndKind(object["apiVersion"].(string), object["kind"].(string))
		if typed, err := types.New(kind); err == nil {
			if err := yaml.UnmarshalStrict(document, typed); err != nil {
				t.Errorf("%s: %s is no valid %s: %v", path, document, kind, err)
			}
		} else if !untyped[kind.Group] {
			t.Errorf("%s: %v", path, err)
		}
	}
	decoded.Store(string(document), object)
	return object
}

func (o objects) add(t *testing.T, path string, document []byte) {
	t.Helper()
	object := decode(t, path, document)
	if len(object) == 0 {
		return
	}
	kind := schema.FromAPIVersionAndKind(object["apiVersion"].(string), object["kind"].(string))
	metadata := object["metadata"].(map[string]any)
	key := kind.Kind + "/" + metadata["name"].(string)
	if in, found := metadata["namespace"]; found && in != namespace {
		key = in.(string) + "/" + key
	}
	if _, twice := o[key]; twice {
		t.Errorf("%s: %s is there twice", path, key)
	}
	o[key] = object
}

// at returns what a path of kubectl's JSONPath finds in an object: "Deployment/x {.spec.replicas}".
func (o objects) at(t *testing.T, where string) string {
	t.Helper()
	key, path, _ := strings.Cut(where, " ")
	object, found := o[key]
	if !found {
		return "no " + key
	}
	parser := jsonpath.New(where).AllowMissingKeys(true)
	var out strings.Builder
	if err := parser.Parse(path); err != nil {
		t.Fatal(err)
	}
	if err := parser.Execute(&out, object); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
