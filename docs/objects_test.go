package docs_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// kinds are our CRDs by the objects that they define.
func kinds(t *testing.T) map[schema.GroupVersionKind]*apiextensions.JSONSchemaProps {
	t.Helper()
	types := runtime.NewScheme()
	install.Install(types)
	decoder := serializer.NewCodecFactory(types, serializer.EnableStrict).UniversalDecoder(apiextensions.SchemeGroupVersion)
	files, err := filepath.Glob("../deploy/crd/*.yaml")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d CRDs: %v", len(files), err)
	}
	found := map[schema.GroupVersionKind]*apiextensions.JSONSchemaProps{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := decoder.Decode(data, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		crd := object.(*apiextensions.CustomResourceDefinition)
		for _, version := range crd.Spec.Versions {
			v, err := apiextensions.GetSchemaForVersion(crd, version.Name)
			if err != nil {
				t.Fatal(err)
			}
			found[schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}] = v.OpenAPIV3Schema
		}
	}
	return found
}

// Objects in the documents and examples are accepted by the API server, and have no field that it does not know.
func TestObjectsOfTheDocumentsAreValid(t *testing.T) {
	t.Parallel()
	ours := kinds(t)
	builtIn := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	checked := 0
	for _, block := range blocks(t) {
		if block.Language != "yaml" || block.Mark != "" && block.Mark != "file" {
			continue
		}
		documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(block.Text)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			var object map[string]any
			if err == nil {
				object, err = decodeObject(document)
			}
			if err != nil {
				t.Errorf("%s: %v", block, err)
				break
			}
			checked++
			version, _ := object["apiVersion"].(string)
			kind, _ := object["kind"].(string)
			if metadata, ok := object["metadata"].(map[string]any); ok && metadata["name"] == nil && metadata["generateName"] != nil {
				metadata["name"] = metadata["generateName"] // as the API server does before it looks at the rules
			}
			if crd, ok := ours[schema.FromAPIVersionAndKind(version, kind)]; ok {
				for _, err := range validate(t, crd, object) {
					t.Errorf("%s: %v", block, err)
				}
			} else if _, _, err := builtIn.Decode(document, nil, nil); err != nil {
				t.Errorf("%s: %v", block, err)
			}
		}
	}
	if checked < 15 {
		t.Errorf("only %d objects were checked", checked)
	}
}

func decodeObject(document []byte) (map[string]any, error) {
	data, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	return object, utiljson.Unmarshal(data, &object)
}

// validate does what the API server does with a custom resource.
func validate(t *testing.T, crd *apiextensions.JSONSchemaProps, object map[string]any) []string {
	t.Helper()
	structural, err := structuralschema.NewStructural(crd)
	if err != nil {
		t.Fatal(err)
	}
	schemaValidator, _, err := validation.NewSchemaValidator(crd)
	if err != nil {
		t.Fatal(err)
	}
	var faults []string
	for _, path := range pruning.PruneWithOptions(object, structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		faults = append(faults, "unknown field "+path)
	}
	defaulting.Default(object, structural)
	errs := validation.ValidateCustomResource(nil, object, schemaValidator)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, structural, object)...)
	if len(errs) == 0 {
		more, _ := cel.NewValidator(structural, true, celconfig.PerCallLimit).Validate(t.Context(), nil, structural, object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, more...)
	}
	for _, err := range errs {
		faults = append(faults, err.Error())
	}
	return faults
}

func TestAMistakeInAnObjectIsFound(t *testing.T) {
	t.Parallel()
	ours := kinds(t)
	for text, want := range map[string]string{
		"spec: {podName: web, containers: [{name: app}], podNmae: x}": "unknown field spec.podNmae",
		"spec: {podName: web}": "spec.containers",
	} {
		object, err := decodeObject([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		crd := ours[schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "ContainerRecreateRequest"}]
		if faults := strings.Join(validate(t, crd, object), "\n"); !strings.Contains(faults, want) {
			t.Errorf("%s: got %q, want %q", text, faults, want)
		}
	}
}
