package deploy_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/refit-project/refit/api/v1beta1"
	crradmission "github.com/refit-project/refit/crr/admission"
)

// The writer must not be able to switch the webhook off, and it is not called where it has nothing to check.
func TestWebhookIsCalledWhereItHasSomethingToCheck(t *testing.T) {
	t.Parallel()
	webhook := documents[admissionregistrationv1.MutatingWebhookConfiguration](t, "manager/*.yaml", "MutatingWebhookConfiguration")[0].Webhooks[0]
	request := func(metadata, spec, phase string) string {
		return `{"apiVersion":"apps.kruise.io/v1beta1","kind":"ContainerRecreateRequest","metadata":{"name":"r"` + metadata + `},"spec":{"podName":"` + spec + `"},"status":{"phase":"` + phase + `"}}`
	}
	const labels = `,"labels":{"crr.apps.kruise.io/active":"true","crr.apps.kruise.io/node-name":"a"},"annotations":{"refit.dev/requested-by":"alice"}`
	const deleted = `,"deletionTimestamp":"2026-01-01T00:00:00Z"`
	before := request(labels, "web", "Recreating")
	for name, tc := range map[string]struct {
		review review
		called bool
	}{
		"new":                               {review{operation: admission.Create, object: request("", "web", "")}, true},
		"new, pretending to be deleted":     {review{operation: admission.Create, object: request(deleted, "web", "")}, true},
		"spec changed":                      {review{object: request(labels, "db", "Recreating"), oldObject: before}, true},
		"changed, pretending to be deleted": {review{object: request(labels+deleted, "db", "Recreating"), oldObject: before}, true},
		"changed while deleted":             {review{object: request(deleted, "db", ""), oldObject: request(labels+deleted, "web", "")}, false},
		"active removed":                    {review{object: request(strings.Replace(labels, `"crr.apps.kruise.io/active":"true",`, "", 1), "web", "Completed"), oldObject: before}, true},
		"active removed after the end":      {review{object: request(strings.Replace(labels, `"crr.apps.kruise.io/active":"true",`, "", 1), "web", "Completed"), oldObject: request(labels, "web", "Completed")}, false},
		"requester changed":                 {review{object: request(strings.Replace(labels, "alice", "bob", 1), "web", "Recreating"), oldObject: before}, true},
		"annotations removed":               {review{object: request(strings.Split(labels, `,"annotations"`)[0], "web", "Recreating"), oldObject: before}, true},
		"finalizer and foreign label":       {review{object: request(strings.Replace(labels, `"labels":{`, `"finalizers":["f/f"],"labels":{"team":"a",`, 1), "web", "Recreating"), oldObject: before}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := tc.review
			if r.operation == "" {
				r.operation = admission.Update
			}
			if called, _ := (policy{conditions: webhook.MatchConditions}).evaluate(t, r); called != tc.called {
				t.Errorf("called: %t", called)
			}
		})
	}
}

// An update that the match conditions leave out is not refused, whatever AdmitUpdate would say of it.
func TestWebhookIsAskedAboutEveryKeyThatMayNotChange(t *testing.T) {
	t.Parallel()
	webhook := documents[admissionregistrationv1.MutatingWebhookConfiguration](t, "manager/*.yaml", "MutatingWebhookConfiguration")[0].Webhooks[0]
	request := func(labels, annotations map[string]string) *v1beta1.ContainerRecreateRequest {
		r := &v1beta1.ContainerRecreateRequest{}
		r.APIVersion, r.Kind, r.Name = "apps.kruise.io/v1beta1", "ContainerRecreateRequest", "r"
		r.Labels, r.Annotations = labels, annotations
		return r
	}
	refused := 0
	check := func(what string, before, after *v1beta1.ContainerRecreateRequest) {
		if _, err := crradmission.AdmitUpdate(before, after); err == nil {
			return
		}
		refused++
		is, errAfter := json.Marshal(after)
		was, errBefore := json.Marshal(before)
		if errAfter != nil || errBefore != nil {
			t.Fatal(errAfter, errBefore)
		}
		r := review{operation: admission.Update, object: string(is), oldObject: string(was)}
		if called, _ := (policy{conditions: webhook.MatchConditions}).evaluate(t, r); !called {
			t.Errorf("%s is refused by the webhook, which is not called", what)
		}
	}
	for _, key := range keys(t) {
		was, is := map[string]string{key: "was"}, map[string]string{key: "is"}
		for change, values := range map[string][2]map[string]string{"changed": {was, is}, "added": {nil, is}, "removed": {was, nil}} {
			check("label "+key+" "+change, request(values[0], nil), request(values[1], nil))
			check("annotation "+key+" "+change, request(nil, values[0]), request(nil, values[1]))
		}
	}
	if refused < 20 {
		t.Errorf("only %d updates are refused", refused)
	}
}

// keys of labels and annotations that the API names.
func keys(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../api/v1beta1/keys.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if key, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(key, "/") {
				found = append(found, key)
			}
		}
		return true
	})
	return found
}
