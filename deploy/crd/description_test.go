package crd_test

import (
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
)

// kubectl explain says something about every field.
func TestEveryFieldHasADescription(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		crd := readFile(t, file)
		for _, version := range crd.Spec.Versions {
			schema, err := apiextensions.GetSchemaForVersion(crd, version.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, field := range undescribed("", schema.OpenAPIV3Schema) {
				t.Errorf("%s %s: %s has no description", crd.Spec.Names.Kind, version.Name, field)
			}
		}
	}
}

// undescribed returns the fields below a path that have no description.
func undescribed(path string, schema *apiextensions.JSONSchemaProps) (fields []string) {
	for name := range schema.Properties {
		property := schema.Properties[name]
		field := path + "." + name
		if property.Description == "" && field != ".metadata" { // which the API server describes
			fields = append(fields, field)
		}
		fields = append(fields, undescribed(field, &property)...)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		fields = append(fields, undescribed(path+"[]", schema.Items.Schema)...)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		fields = append(fields, undescribed(path+".*", schema.AdditionalProperties.Schema)...)
	}
	return fields
}
