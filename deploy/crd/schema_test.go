// Package crd_test checks the shipped CRDs with the API server's own code. It is outside the module api, whose users
// should not have to download that.
package crd_test

import (
	"os"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// readCRD decodes a shipped manifest the way the API server does, unknown fields refused.
func readCRD(t *testing.T, plural string) *apiextensions.CustomResourceDefinition {
	t.Helper()
	return readFile(t, "apps.kruise.io_"+plural+".yaml")
}

func readFile(t *testing.T, name string) *apiextensions.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(apiextensions.SchemeGroupVersion)
	object, _, err := decoder.Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return object.(*apiextensions.CustomResourceDefinition)
}

// rules are what the API server applies to a custom resource: schema, list types, validation rules.
type rules struct {
	schema     validation.SchemaValidator
	structural *structuralschema.Structural
	cel        *cel.Validator
}

// readRules compiles the rules of a CRD, which takes seconds with the race detector. Tests that run at the same time share them.
func readRules(t *testing.T, plural, version string) rules {
	t.Helper()
	return compile(t, readCRD(t, plural), version)
}

func compile(t *testing.T, crd *apiextensions.CustomResourceDefinition, version string) rules {
	t.Helper()
	v, err := apiextensions.GetSchemaForVersion(crd, version)
	if err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(v.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	schema, _, err := validation.NewSchemaValidator(v.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return rules{schema: schema, structural: structural, cel: cel.NewValidator(structural, true, celconfig.PerCallLimit)}
}

func (r rules) validate(t *testing.T, object, old map[string]any) field.ErrorList {
	t.Helper()
	errs := validation.ValidateCustomResource(nil, object, r.schema)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, r.structural, object)...)
	if len(errs) > 0 {
		return errs
	}
	var before any
	if old != nil {
		before = old
	}
	errs, _ = r.cel.Validate(t.Context(), nil, r.structural, object, before, celconfig.RuntimeCELCostBudget)
	return errs
}
