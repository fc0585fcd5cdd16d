package deploy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	celgo "github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
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

func (e expression) GetExpression() string { return string(e) }

func (e expression) ReturnTypes() []*celgo.Type { return []*celgo.Type{celgo.BoolType} }

type variable struct {
	admissionregistrationv1.Variable
}

func (v variable) GetExpression() string { return v.Expression }

func (v variable) GetName() string { return v.Name }

func (v variable) ReturnTypes() []*celgo.Type { return []*celgo.Type{celgo.AnyType, celgo.DynType} }

// review is a request to the API server.
type review struct {
	user, node, pod   string // the node and the pod that the user's token is bound to
	operation         admission.Operation
	resource, name    string // of what is written
	subresource       string
	object, oldObject string // JSON
	params            string // JSON; empty for a ClusterRoleBinding
	kind              string // of what is written
	may               authorizer.AuthorizerFunc
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
	// operations of the resource rules; nil means all.
	operations []admissionregistrationv1.OperationType
}

// covers reports whether the API server evaluates the policy for an operation.
func (p policy) covers(operation admission.Operation) bool {
	of := admissionregistrationv1.OperationType(operation)
	return p.operations == nil || slices.Contains(p.operations, admissionregistrationv1.OperationAll) || slices.Contains(p.operations, of)
}

func (p policy) evaluate(t *testing.T, r review) (matches bool, refused string) {
	t.Helper()
	if r.operation != "" && !p.covers(r.operation) {
		return false, ""
	}
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
	values := func(of []cel.ExpressionAccessor, namespace *corev1.Namespace) []cel.EvaluationResult {
		attributes := &admission.VersionedAttributes{
			Attributes:         admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "", "", schema.GroupVersionResource{}, r.subresource, r.operation, nil, false, &user.DefaultInfo{Name: r.user}),
			VersionedObject:    admission.NewLazyObject(object(t, r.object)),
			VersionedOldObject: admission.NewLazyObject(object(t, r.oldObject)),
		}
		info := authenticationv1.UserInfo{Username: r.user, Extra: map[string]authenticationv1.ExtraValue{}}
		if r.node != "" {
			info.Extra["authentication.kubernetes.io/node-name"] = authenticationv1.ExtraValue{r.node}
		}
		if r.pod != "" {
			info.Extra["authentication.kubernetes.io/pod-name"] = authenticationv1.ExtraValue{r.pod}
			info.Extra["authentication.kubernetes.io/pod-uid"] = authenticationv1.ExtraValue{"uid-" + r.pod}
		}
		request := &admissionv1.AdmissionRequest{
			Operation: admissionv1.Operation(r.operation), Name: r.name, Resource: metav1.GroupVersionResource{Resource: r.resource},
			SubResource: r.subresource, UserInfo: info, Kind: metav1.GroupVersionKind{Kind: r.kind},
		}
		if r.namespace != nil {
			request.Namespace = r.namespace.Name
		}
		results, _, err := compiler.CompileCondition(of, declared, environment.StoredExpressions).ForInput(
			t.Context(), attributes, request, cel.OptionalVariableBindings{VersionedParams: params, Authorizer: r.may}, namespace, celconfig.RuntimeCELCostBudget)
		if err != nil {
			t.Fatal(err)
		}
		return results
	}
	for i, result := range values(conditions, nil) { // the API server gives namespaceObject to validations only
		if result.Error != nil {
			t.Fatalf("match condition %s: %v", p.conditions[i].Name, result.Error)
		}
		if result.EvalResult.Value() != true {
			return false, ""
		}
	}
	for i, result := range values(rules, r.namespace) {
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
			made := policy{name: name, variables: p.Spec.Variables, conditions: p.Spec.MatchConditions, rules: p.Spec.Validations, params: p.Spec.ParamKind != nil}
			for _, rule := range p.Spec.MatchConstraints.ResourceRules {
				made.operations = append(made.operations, rule.Operations...)
			}
			return made
		}
	}
	t.Fatalf("no policy %s", name)
	return policy{}
}
