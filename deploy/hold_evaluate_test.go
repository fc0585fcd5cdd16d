package deploy_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
)

// write is an update of a workload. The texts are JSON of metadata and spec.
type write struct {
	kind, user     string
	before, after  string
	targets, spec  string // of the InPlaceUpdatePolicy; empty: the workload, nothing
	accepted, gone bool   // the policy
	labels         string // the value of the label of refit-manager, before and after; empty for none
}

const (
	byLabel   = "refit-hold"
	holdLabel = "refit.dev/hold-uid"
	uid       = "0b9a3c3e-5f0c-4f3e-9a57-2f6a3f1f3a11"
)

func (w write) policy() string {
	status, deleted := "False", ""
	if w.accepted {
		status = "True"
	}
	if w.gone {
		deleted = `,"deletionTimestamp":"2026-11-26T12:00:00Z"`
	}
	return `{"apiVersion":"refit.dev/v1alpha1","kind":"InPlaceUpdatePolicy","metadata":{"name":"p"` + deleted + `},"spec":{"targetRef":{"apiVersion":"apps/v1",` +
		`"kind":"` + w.kind + `","name":"` + w.targets + `"}` + w.spec + `},"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Accepted","status":"` + status + `"}]}}`
}

func (w write) object(t *testing.T, text string) runtime.Object {
	t.Helper()
	object := map[string]runtime.Object{"Deployment": &appsv1.Deployment{}, "StatefulSet": &appsv1.StatefulSet{}, "DaemonSet": &appsv1.DaemonSet{}}[w.kind]
	if err := json.Unmarshal([]byte(text), object); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	object.GetObjectKind().SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(w.kind))
	if named := object.(metav1.Object); w.labels != "" {
		named.SetUID(uid)
		labels := map[string]string{holdLabel: w.labels}
		maps.Copy(labels, named.GetLabels())
		named.SetLabels(labels)
	}
	return object
}

// labelled has the texts of metadata with the label of refit-manager.
func labelled(labels string) string {
	return `{"metadata":{"name":"web","uid":"` + uid + `"` + labels + `},"spec":{"template":{}}}`
}

// holds has the API server's code evaluate the policy of this name. It returns what is stored, and what the condition has cost.
func (w write) holds(t *testing.T, by string) (stored runtime.Object, cost int64) {
	t.Helper()
	policies := documents[admissionregistrationv1.MutatingAdmissionPolicy](t, "hold/*.yaml", "MutatingAdmissionPolicy")
	p := policies[slices.IndexFunc(policies, func(p admissionregistrationv1.MutatingAdmissionPolicy) bool { return p.Name == by })]
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	selected, err := metav1.LabelSelectorAsSelector(p.Spec.MatchConstraints.ObjectSelector)
	if err != nil {
		t.Fatal(err)
	}
	declared := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	var variables []cel.NamedExpressionAccessor
	for _, v := range p.Spec.Variables {
		variables = append(variables, variable{admissionregistrationv1.Variable(v)})
	}
	compiler.CompileAndStoreVariables(variables, declared, environment.StoredExpressions)
	kind, resource := appsv1.SchemeGroupVersion.WithKind(w.kind), appsv1.SchemeGroupVersion.WithResource(strings.ToLower(w.kind)+"s")
	after, before := w.object(t, w.after), w.object(t, w.before)
	if !selected.Matches(labelsOf(after)) && !selected.Matches(labelsOf(before)) {
		return after, 0
	}
	attributes := &admission.VersionedAttributes{
		Attributes:    admission.NewAttributesRecord(after, before, kind, "shop", "web", resource, "", admission.Update, nil, false, &user.DefaultInfo{Name: w.user}),
		VersionedKind: kind, VersionedObject: admission.NewLazyObject(after), VersionedOldObject: admission.NewLazyObject(before),
	}
	var bound cel.OptionalVariableBindings
	request := &admissionv1.AdmissionRequest{
		Operation: admissionv1.Update, Name: "web", Namespace: "shop", Kind: metav1.GroupVersionKind(kind), Resource: metav1.GroupVersionResource(resource),
		UserInfo: authenticationv1.UserInfo{Username: w.user},
	}
	var conditions []cel.ExpressionAccessor
	for _, c := range p.Spec.MatchConditions {
		conditions = append(conditions, expression(c.Expression))
	}
	results, rest, err := compiler.CompileCondition(conditions, declared, environment.StoredExpressions).ForInput(
		t.Context(), attributes, request, bound, nil, celconfig.RuntimeCELCostBudgetMatchConditions)
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range results {
		if result.Error != nil {
			t.Fatal(result.Error)
		}
		if result.EvalResult.Value() != true {
			return after, celconfig.RuntimeCELCostBudgetMatchConditions - rest
		}
	}
	declared.HasPatchTypes = true
	scheme := runtime.NewScheme()
	if err := appsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, mutation := range p.Spec.Mutations {
		evaluator := compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: mutation.JSONPatch.Expression}, declared, environment.StoredExpressions)
		after, err = patch.NewJSONPatcher(evaluator).Patch(compiler.CreateContext(t.Context()), patch.Request{
			MatchedResource: schema.GroupVersionResource(resource), VersionedAttributes: attributes,
			ObjectInterfaces: admission.NewObjectInterfacesFromScheme(scheme), OptionalVariables: bound,
		}, celconfig.RuntimeCELCostBudget)
		if err != nil {
			t.Fatalf("%v in %s", err, mutation.JSONPatch.Expression)
		}
	}
	return after, celconfig.RuntimeCELCostBudgetMatchConditions - rest
}

func labelsOf(object runtime.Object) labels.Set { return object.(metav1.Object).GetLabels() }
