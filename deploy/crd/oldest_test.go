package crd_test

import (
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// oldest has the functions of CEL that a new CRD may use in Kubernetes 1.30, the oldest version that the chart accepts: an API
// server refuses functions that its previous version does not have.
var oldest = version.MajorMinor(1, 29)

func TestCRDsAreAcceptedByTheOldestAPIServer(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			crd := readFile(t, file)
			for _, served := range crd.Spec.Versions {
				v, err := apiextensions.GetSchemaForVersion(crd, served.Name)
				if err != nil {
					t.Fatal(err)
				}
				structural, err := structuralschema.NewStructural(v.OpenAPIV3Schema)
				if err != nil {
					t.Fatal(err)
				}
				compileRules(t, field.NewPath(served.Name), structural, true)
			}
		})
	}
}

// compileRules compiles the rules of a schema and of what is below it.
func compileRules(t *testing.T, path *field.Path, schema *structuralschema.Structural, root bool) {
	t.Helper()
	if len(schema.XValidations) > 0 {
		results, err := cel.Compile(schema, model.SchemaDeclType(schema, root), celconfig.PerCallLimit, environment.MustBaseEnvSet(oldest), cel.NewExpressionsEnvLoader())
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for i, result := range results {
			if result.Error != nil || result.MessageExpressionError != nil {
				t.Errorf("%s: rule %s: %v, %v", path, schema.XValidations[i].Rule, result.Error, result.MessageExpressionError)
			}
		}
	}
	for name := range schema.Properties {
		property := schema.Properties[name]
		compileRules(t, path.Child(name), &property, property.XEmbeddedResource)
	}
	if schema.Items != nil {
		compileRules(t, path.Index(0), schema.Items, schema.Items.XEmbeddedResource)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Structural != nil {
		compileRules(t, path.Key("*"), schema.AdditionalProperties.Structural, schema.AdditionalProperties.Structural.XEmbeddedResource)
	}
}
