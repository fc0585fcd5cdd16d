package crd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

func TestCRDsAreAcceptedByTheAPIServer(t *testing.T) {
	t.Parallel()
	for plural, stored := range storedVersions() {
		crd := readCRD(t, plural)
		crd.Status.StoredVersions = []string{stored}
		for _, err := range crdvalidation.ValidateCustomResourceDefinition(t.Context(), crd) {
			t.Error(err) // the cost budget of validation rules is checked here too
		}
	}
	files, err := filepath.Glob("refit.dev_*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d CRDs of refit.dev, %v", len(files), err)
	}
	for _, file := range files {
		crd := readFile(t, file)
		crd.Status.StoredVersions = []string{"v1alpha1"}
		for _, err := range crdvalidation.ValidateCustomResourceDefinition(t.Context(), crd) {
			t.Error(err)
		}
	}
}

// storedVersions are the versions that objects are stored in. Both are served, so that the CRDs can replace the CRDs of any
// OpenKruise, whatever version it has stored.
func storedVersions() map[string]string {
	return map[string]string{
		"podprobemarkers": "v1alpha1", "nodepodprobes": "v1alpha1",
		"nodeimages": "v1beta1", "imagepulljobs": "v1beta1", "imagelistpulljobs": "v1beta1", "sidecarsets": "v1beta1",
	}
}

func TestObjectsHaveOneSchemaInBothVersions(t *testing.T) {
	t.Parallel()
	for plural, stored := range storedVersions() {
		crd := readCRD(t, plural)
		if c := crd.Spec.Conversion; c != nil && c.Strategy != apiextensions.NoneConverter {
			t.Errorf("%s: conversion %v", plural, c)
		}
		schemas := map[string]*apiextensions.JSONSchemaProps{}
		for _, v := range crd.Spec.Versions {
			s, err := apiextensions.GetSchemaForVersion(crd, v.Name)
			if err != nil {
				t.Fatal(err)
			}
			schemas[v.Name] = s.OpenAPIV3Schema
			schemas[v.Name].Description = ""
			if v.Storage != (v.Name == stored) || !v.Served {
				t.Errorf("%s %s: storage %t, served %t", plural, v.Name, v.Storage, v.Served)
			}
		}
		if len(schemas) != 2 {
			t.Errorf("%s: %d versions", plural, len(schemas))
		}
		if diff := cmp.Diff(schemas["v1alpha1"], schemas["v1beta1"]); diff != "" {
			t.Errorf("%s: %s", plural, diff)
		}
	}
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	var object map[string]any
	if err := utiljson.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func refused(t *testing.T, errs field.ErrorList, want ...string) {
	t.Helper()
	got := errs.ToAggregate()
	if len(want) == 0 && got != nil {
		t.Errorf("refused: %v", got)
	}
	for _, words := range want {
		if got == nil || !strings.Contains(got.Error(), words) {
			t.Errorf("got %v, want an error with %q", got, words)
		}
	}
}

// rule is one case of testdata/*_rules.yaml, which the end-to-end tests use as well.
type rule struct {
	Name, Old, To string
	Many          struct {
		Text  string
		Times int
	}
	Update bool
	Want   []string
}

func TestRulesOfObjects(t *testing.T) {
	t.Parallel()
	for plural, file := range map[string]string{
		"podprobemarkers": "testdata/podprobemarker", "nodepodprobes": "testdata/nodepodprobe", "nodeimages": "testdata/nodeimage",
		"imagepulljobs": "testdata/imagepulljob", "imagelistpulljobs": "testdata/imagelistpulljob", "sidecarsets": "testdata/sidecarset",
	} {
		valid := read(t, file+".yaml")
		var rules []rule
		if err := yaml.UnmarshalStrict(read(t, file+"_rules.yaml"), &rules); err != nil {
			t.Fatal(err)
		}
		compiled := readRules(t, plural, "v1alpha1")
		for _, r := range rules {
			t.Run(plural+"/"+r.Name, func(t *testing.T) {
				t.Parallel()
				var old map[string]any
				if r.Update {
					old = decode(t, string(valid))
				}
				if !strings.Contains(string(valid), r.Old) {
					t.Fatalf("no %q in the valid object", r.Old)
				}
				to := strings.Replace(r.To, "$MANY", strings.Repeat(r.Many.Text, r.Many.Times), 1)
				refused(t, compiled.validate(t, decode(t, strings.Replace(string(valid), r.Old, to, 1)), old), r.Want...)
			})
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
