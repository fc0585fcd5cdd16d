package crd_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/refit-project/refit/api/v1beta1"
)

const requests = "containerrecreaterequests"

func TestCRDIsAcceptedByTheAPIServer(t *testing.T) {
	t.Parallel()
	crd := readCRD(t, requests)
	crd.Status.StoredVersions = []string{"v1beta1"}
	for _, err := range crdvalidation.ValidateCustomResourceDefinition(t.Context(), crd) {
		t.Error(err) // the cost budget of validation rules is checked here too
	}
	if got := crd.Spec.Conversion.Strategy; got != apiextensions.NoneConverter {
		t.Errorf("conversion %s: reads would call a webhook", got)
	}
	for _, v := range crd.Spec.Versions {
		if v.Storage != (v.Name == v1beta1.GroupVersion().Version) || !v.Served {
			t.Errorf("version %s: storage %t, served %t", v.Name, v.Storage, v.Served)
		}
	}
}

// request returns a valid object as JSON values, changed by edit.
func request(t *testing.T, edit func(spec map[string]any)) map[string]any {
	t.Helper()
	var object map[string]any
	err := utiljson.Unmarshal([]byte(`{"apiVersion":"apps.kruise.io/v1beta1","kind":"ContainerRecreateRequest",
		"metadata":{"name":"r"},
		"spec":{"podName":"web","containers":[{"name":"app"},{"name":"log"}],"strategy":{"failurePolicy":"Fail"},
		"activeDeadlineSeconds":60,"ttlSecondsAfterFinished":0}}`), &object)
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(object["spec"].(map[string]any))
	}
	return object
}

func TestCRDRules(t *testing.T) {
	t.Parallel()
	strategy := func(key string, value any) func(map[string]any) {
		return func(spec map[string]any) { spec["strategy"].(map[string]any)[key] = value }
	}
	set := func(key string, value any) func(map[string]any) {
		return func(spec map[string]any) { spec[key] = value }
	}
	versions := map[string]rules{"v1alpha1": readRules(t, requests, "v1alpha1"), "v1beta1": readRules(t, requests, "v1beta1")}
	for name, tc := range map[string]struct {
		edit   func(map[string]any)
		update bool // the unchanged object is the old one
		want   string
	}{
		"valid":                      {},
		"valid update":               {update: true},
		"spec changed":               {edit: set("podName", "other"), update: true, want: "cannot be changed"},
		"strategy changed":           {edit: strategy("forceRecreate", true), update: true, want: "cannot be changed"},
		"containers reordered":       {edit: set("containers", names("log", "app")), update: true, want: "cannot be changed"},
		"no pod name":                {edit: set("podName", ""), want: "spec.podName"},
		"pod name too long":          {edit: set("podName", strings.Repeat("a", 254)), want: "spec.podName"},
		"no containers":              {edit: set("containers", []any{}), want: "spec.containers"},
		"container without name":     {edit: set("containers", names("")), want: "spec.containers[0].name"},
		"container name too long":    {edit: set("containers", names(strings.Repeat("a", 64))), want: "spec.containers[0].name"},
		"a container twice":          {edit: set("containers", names("app", "app")), want: "spec.containers[1]"},
		"too many containers":        {edit: set("containers", names(make([]string, v1beta1.MaxContainers+1)...)), want: "must have at most 256 items"},
		"deadline below 3":           {edit: set("activeDeadlineSeconds", int64(2)), want: "spec.activeDeadlineSeconds"},
		"negative TTL":               {edit: set("ttlSecondsAfterFinished", int64(-1)), want: "spec.ttlSecondsAfterFinished"},
		"unknown failure policy":     {edit: strategy("failurePolicy", "Retry"), want: "spec.strategy.failurePolicy"},
		"negative grace":             {edit: strategy("terminationGracePeriodSeconds", int64(-1)), want: "terminationGracePeriodSeconds"},
		"negative unready grace":     {edit: strategy("unreadyGracePeriodSeconds", int64(-1)), want: "unreadyGracePeriodSeconds"},
		"negative minStartedSeconds": {edit: strategy("minStartedSeconds", int64(-1)), want: "minStartedSeconds"},
	} {
		for version, rules := range versions {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				var old map[string]any
				if tc.update {
					old = request(t, nil)
				}
				errs := rules.validate(t, request(t, tc.edit), old)
				switch got := errs.ToAggregate(); {
				case tc.want == "" && got != nil:
					t.Errorf("refused: %v", got)
				case tc.want != "" && (got == nil || !strings.Contains(got.Error(), tc.want)):
					t.Errorf("got %v, want an error with %q", got, tc.want)
				}
			})
		}
	}
}

func names(list ...string) []any {
	out := make([]any, 0, len(list))
	for _, name := range list {
		out = append(out, map[string]any{"name": name})
	}
	return out
}

// Without a webhook the API server changes nothing but apiVersion: a difference between the schemas would drop fields.
func TestVersionsHaveOneSchema(t *testing.T) {
	t.Parallel()
	crd := readCRD(t, requests)
	schemas := map[string]*apiextensions.JSONSchemaProps{}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		v, err := apiextensions.GetSchemaForVersion(crd, version)
		if err != nil {
			t.Fatal(err)
		}
		schema := v.OpenAPIV3Schema.DeepCopy()
		schema.Description = "" // the description of the type says what is special about the version
		schemas[version] = schema
	}
	if diff := cmp.Diff(schemas["v1beta1"], schemas["v1alpha1"]); diff != "" {
		t.Errorf("schemas (-v1beta1 +v1alpha1):\n%s", diff)
	}
}
