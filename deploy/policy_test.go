// Package deploy_test evaluates the shipped admission policies as the API server does.
package deploy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// documents of a kind in the manifests of a folder.
func documents[T any](t *testing.T, pattern, kind string) []T {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests %s: %v", pattern, err)
	}
	var found []T
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
			if !bytes.Contains(document, []byte("\nkind: "+kind+"\n")) {
				continue
			}
			var object T
			if err := yaml.UnmarshalStrict(document, &object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			found = append(found, object)
		}
	}
	return found
}

type expression string

func (e expression) GetExpression() string      { return string(e) }
func (e expression) ReturnTypes() []*celgo.Type { return []*celgo.Type{celgo.BoolType} }

type variable struct {
	admissionregistrationv1.Variable
}

func (v variable) GetExpression() string      { return v.Expression }
func (v variable) GetName() string            { return v.Name }
func (v variable) ReturnTypes() []*celgo.Type { return []*celgo.Type{celgo.AnyType, celgo.DynType} }

// review is a request to the API server.
type review struct {
	user, node        string
	operation         admission.Operation
	subresource       string
	object, oldObject string // JSON
	params            string // JSON; empty for a ClusterRoleBinding
	namespace         *corev1.Namespace
}

func object(t *testing.T, content string) runtime.Object {
	t.Helper()
	if content == "" {
		return nil
	}
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON([]byte(content)); err != nil {
		t.Fatal(err)
	}
	return &u
}

// policy is a set of conditions with their variables.
type policy struct {
	name       string
	variables  []admissionregistrationv1.Variable
	conditions []admissionregistrationv1.MatchCondition
	rules      []admissionregistrationv1.Validation
	params     bool
}

func (p policy) evaluate(t *testing.T, r review) (matches bool, refused string) {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	declared := cel.OptionalVariableDeclarations{HasParams: p.params, HasAuthorizer: true}
	var variables []cel.NamedExpressionAccessor
	for _, v := range p.variables {
		variables = append(variables, variable{v})
	}
	compiler.CompileAndStoreVariables(variables, declared, environment.StoredExpressions)
	var conditions, rules []cel.ExpressionAccessor
	for _, c := range p.conditions {
		conditions = append(conditions, expression(c.Expression))
	}
	for _, v := range p.rules {
		rules = append(rules, expression(v.Expression))
	}
	var params runtime.Object
	switch {
	case r.params != "":
		params = object(t, r.params)
	case p.params:
		params = object(t, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"x"},
			"subjects":[{"kind":"ServiceAccount","namespace":"elsewhere","name":"renamed"}]}`)
	}
	values := func(of []cel.ExpressionAccessor) []cel.EvaluationResult {
		attributes := &admission.VersionedAttributes{
			Attributes:         admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "", "", schema.GroupVersionResource{}, r.subresource, r.operation, nil, false, nil),
			VersionedObject:    admission.NewLazyObject(object(t, r.object)),
			VersionedOldObject: admission.NewLazyObject(object(t, r.oldObject)),
		}
		user := authenticationv1.UserInfo{Username: r.user}
		if r.node != "" {
			user.Extra = map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/node-name": {r.node}}
		}
		request := &admissionv1.AdmissionRequest{Operation: admissionv1.Operation(r.operation), SubResource: r.subresource, UserInfo: user}
		if r.namespace != nil {
			request.Namespace = r.namespace.Name
		}
		results, _, err := compiler.CompileCondition(of, declared, environment.StoredExpressions).ForInput(
			t.Context(), attributes, request, cel.OptionalVariableBindings{VersionedParams: params}, r.namespace, celconfig.RuntimeCELCostBudget)
		if err != nil {
			t.Fatal(err)
		}
		return results
	}
	for i, result := range values(conditions) {
		if result.Error != nil {
			t.Fatalf("match condition %s: %v", p.conditions[i].Name, result.Error)
		}
		if result.EvalResult.Value() != true {
			return false, ""
		}
	}
	for i, result := range values(rules) {
		if result.Error != nil {
			return true, result.Error.Error()
		}
		if result.EvalResult.Value() != true {
			return true, p.rules[i].Message + p.rules[i].MessageExpression
		}
	}
	return true, ""
}

func shipped(t *testing.T, pattern, name string) policy {
	t.Helper()
	for _, p := range documents[admissionregistrationv1.ValidatingAdmissionPolicy](t, pattern, "ValidatingAdmissionPolicy") {
		if p.Name == name {
			return policy{name, p.Spec.Variables, p.Spec.MatchConditions, p.Spec.Validations, p.Spec.ParamKind != nil}
		}
	}
	t.Fatalf("no policy %s", name)
	return policy{}
}

const account = "system:serviceaccount:elsewhere:renamed" // whoever is bound, not a name in the policy

func TestManagerMayWriteOfPodsOnlyWhatDrainsAndProbesNeed(t *testing.T) {
	t.Parallel()
	pods := shipped(t, "manager/*.yaml", "refit-manager-pods")
	pod := func(metadata, status string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"` + metadata + `},"spec":{},"status":{"phase":"Running","podIP":"10.0.0.1"` + status + `}}`
	}
	const ready = `,"conditions":[{"type":"Initialized","status":"True"},{"type":"Ready","status":"True"}]`
	before := pod(`,"labels":{"app":"web","pod-template-hash":"a"}`, ready)
	with := func(from, to string) string { return strings.Replace(before, from, to, 1) }
	for name, tc := range map[string]struct {
		review review
		want   string // part of the refusal; empty: allowed
	}{
		"nothing":                   {review: review{object: before}},
		"a label":                   {review: review{object: with(`"app":"web"`, `"app":"web","example.com/idle":"yes"`)}},
		"an annotation":             {review: review{object: with(`"name":"web"`, `"name":"web","annotations":{"controller.kubernetes.io/pod-deletion-cost":"1","kruise.io/podprobe":"[]"}`)}},
		"an overridden result":      {review: review{object: with(`"name":"web"`, `"name":"web","annotations":{"refit.dev/podprobe-overridden":"{}"}`)}},
		"a condition":               {review: review{object: with(`"conditions":[`, `"conditions":[{"type":"example.com/idle","status":"True"},`)}},
		"a drain":                   {review: review{object: with(`"Ready","status":"True"}`, `"Ready","status":"False","reason":"ReadinessGatesNotReady"},{"type":"KruisePodReady","status":"False"}`)}},
		"another user":              {review: review{user: "alice", object: with("10.0.0.1", "10.9.9.9")}},
		"address":                   {review: review{object: with("10.0.0.1", "10.9.9.9")}, want: "nothing of a pod's status but conditions"},
		"phase":                     {review: review{object: with("Running", "Failed")}, want: "nothing of a pod's status but conditions"},
		"container statuses":        {review: review{object: pod(`,"labels":{"app":"web","pod-template-hash":"a"}`, ready+`,"containerStatuses":[{"name":"app"}]`)}, want: "nothing of a pod's status but conditions"},
		"finalizers":                {review: review{object: with(`"name":"web"`, `"name":"web","finalizers":["a.b/c"]`)}, want: "nothing of a pod's status"},
		"ready without being so":    {review: review{object: before, oldObject: with(`"Ready","status":"True"`, `"Ready","status":"False"`)}, want: "Ready to False only"},
		"a condition of kubelet":    {review: review{object: with(`"Initialized","status":"True"`, `"Initialized","status":"False"`)}, want: "conditions of kubelet"},
		"a reserved label":          {review: review{object: with(`"app":"web"`, `"app":"web","topology.kubernetes.io/zone":"x"`)}, want: "reserved"},
		"a reserved label changed":  {review: review{object: with(`"pod-template-hash":"a"`, `"pod-template-hash":"b"`)}, want: "reserved"},
		"a reserved label removed":  {review: review{object: with(`,"pod-template-hash":"a"`, ``)}, want: "reserved"},
		"an annotation of a daemon": {review: review{object: with(`"name":"web"`, `"name":"web","annotations":{"refit.dev/nudge":"x"}`)}, want: "reserved"},
		"the pod itself":            {review: review{object: before, subresource: "none"}, want: "status subresource"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := tc.review
			r.operation = admission.Update
			if r.user == "" {
				r.user = account
			}
			if r.oldObject == "" {
				r.oldObject = before
			}
			switch r.subresource {
			case "":
				r.subresource = "status"
			case "none":
				r.subresource = ""
			}
			if _, refused := pods.evaluate(t, r); (tc.want == "") != (refused == "") || !strings.Contains(refused, tc.want) {
				t.Errorf("refused: %q, want %q", refused, tc.want)
			}
		})
	}
}

func TestDaemonSendsEventsInTheNameOfItsNodeOnly(t *testing.T) {
	t.Parallel()
	events := shipped(t, "daemonset/*.yaml", "refit-daemon-events")
	event := func(host, kind, name string) string {
		return `{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"involvedObject":{"kind":"` + kind + `","name":"` + name + `"},
			"source":{"component":"refit-daemon","host":"` + host + `"},"reportingComponent":"refit-daemon","reportingInstance":"` + host + `"}`
	}
	for name, tc := range map[string]struct {
		review review
		want   string
	}{
		"about a pod":              {review: review{node: "a", object: event("a", "Pod", "web")}},
		"about its node":           {review: review{node: "a", object: event("a", "Node", "a")}},
		"counted":                  {review: review{node: "a", operation: admission.Update, object: event("a", "Pod", "web"), oldObject: event("a", "Pod", "web")}},
		"another user":             {review: review{user: "kubelet", object: event("b", "Pod", "web")}},
		"in the name of another":   {review: review{node: "a", object: event("b", "Pod", "web")}, want: "in the name of node"},
		"about another node":       {review: review{node: "a", object: event("a", "Node", "b")}, want: "about another node"},
		"changing that of another": {review: review{node: "a", operation: admission.Update, object: event("a", "Pod", "web"), oldObject: event("b", "Pod", "web")}, want: "another node"},
		"with a token of no node":  {review: review{object: event("", "Pod", "web")}, want: "in the name of node"},
		"deleting one":             {review: review{node: "a", operation: admission.Delete, oldObject: event("a", "Pod", "web")}, want: "may not delete"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := tc.review
			if r.operation == "" {
				r.operation = admission.Create
			}
			if r.user == "" {
				r.user = account
			}
			if _, refused := events.evaluate(t, r); (tc.want == "") != (refused == "") || !strings.Contains(refused, tc.want) {
				t.Errorf("refused: %q, want %q", refused, tc.want)
			}
		})
	}
}

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

// No policy names the account or the namespace of an installation.
func TestPoliciesFollowTheirBinding(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"manager/*.yaml", "daemonset/*.yaml"} {
		for _, p := range documents[admissionregistrationv1.ValidatingAdmissionPolicy](t, pattern, "ValidatingAdmissionPolicy") {
			for _, c := range p.Spec.MatchConditions {
				if strings.Contains(c.Expression, "refit-system") {
					t.Errorf("%s: match condition %s names a namespace", p.Name, c.Name)
				}
			}
		}
		for _, b := range documents[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, pattern, "ValidatingAdmissionPolicyBinding") {
			if b.Spec.ParamRef != nil && *b.Spec.ParamRef.ParameterNotFoundAction != admissionregistrationv1.AllowAction {
				t.Errorf("%s: without its parameter it would refuse everybody's writes", b.Name)
			}
		}
	}
}
