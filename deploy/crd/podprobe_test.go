package v1alpha1_test

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// readCRD decodes a shipped manifest the way the API server does, unknown fields refused.
func readCRD(t *testing.T, plural string) *apiextensions.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile("../../deploy/crd/apps.kruise.io_" + plural + ".yaml")
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

func TestCRDsAreAcceptedByTheAPIServer(t *testing.T) {
	t.Parallel()
	for plural, stored := range map[string]string{
		"podprobemarkers": "v1alpha1", "nodepodprobes": "v1alpha1",
		"nodeimages": "v1beta1", "imagepulljobs": "v1beta1", "imagelistpulljobs": "v1beta1",
	} {
		crd := readCRD(t, plural)
		crd.Status.StoredVersions = []string{stored}
		for _, err := range crdvalidation.ValidateCustomResourceDefinition(t.Context(), crd) {
			t.Error(err) // the cost budget of validation rules is checked here too
		}
	}
}

// validate applies what the API server applies to a custom resource: schema, list types, validation rules.
func validate(t *testing.T, plural string, object, old map[string]any) field.ErrorList {
	t.Helper()
	v, err := apiextensions.GetSchemaForVersion(readCRD(t, plural), "v1alpha1")
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
	errs := validation.ValidateCustomResource(nil, object, schema)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, structural, object)...)
	if len(errs) > 0 {
		return errs
	}
	var before any
	if old != nil {
		before = old
	}
	rules := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	errs, _ = rules.Validate(t.Context(), nil, structural, object, before, celconfig.RuntimeCELCostBudget)
	return errs
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

func TestCRDRules(t *testing.T) {
	t.Parallel()
	for plural, file := range map[string]string{
		"podprobemarkers": "testdata/podprobemarker", "nodepodprobes": "testdata/nodepodprobe", "nodeimages": "testdata/nodeimage",
		"imagepulljobs": "testdata/imagepulljob", "imagelistpulljobs": "testdata/imagelistpulljob",
	} {
		valid := read(t, file+".yaml")
		var rules []rule
		if err := yaml.UnmarshalStrict(read(t, file+"_rules.yaml"), &rules); err != nil {
			t.Fatal(err)
		}
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
				refused(t, validate(t, plural, decode(t, strings.Replace(string(valid), r.Old, to, 1)), old), r.Want...)
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
