package deploy_test

import (
	"testing"

	celgo "github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// oldest has the functions of CEL that a new policy may use in Kubernetes 1.30, the oldest version that the chart accepts: an API
// server refuses functions that its previous version does not have.
var oldest = version.MajorMinor(1, 29)

type message string

func (m message) GetExpression() string { return string(m) }

func (message) ReturnTypes() []*celgo.Type { return []*celgo.Type{celgo.StringType} }

func TestPoliciesAreAcceptedByTheOldestAPIServer(t *testing.T) {
	t.Parallel()
	for _, p := range documents[admissionregistrationv1.ValidatingAdmissionPolicy](t, "*/*.yaml", "ValidatingAdmissionPolicy") {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(oldest))
			if err != nil {
				t.Fatal(err)
			}
			declared := cel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
			accepted := func(what string, result cel.CompilationResult) {
				if result.Error != nil {
					t.Errorf("%s: %v", what, result.Error)
				}
			}
			for _, c := range p.Spec.MatchConditions {
				accepted("match condition "+c.Name, compiler.CompileCELExpression(expression(c.Expression), declared, environment.NewExpressions))
			}
			for _, v := range p.Spec.Variables {
				accepted("variable "+v.Name, compiler.CompileAndStoreVariable(variable{v}, declared, environment.NewExpressions))
			}
			for _, v := range p.Spec.Validations {
				accepted("validation "+v.Expression, compiler.CompileCELExpression(expression(v.Expression), declared, environment.NewExpressions))
				if v.MessageExpression == "" {
					continue
				}
				declared := cel.OptionalVariableDeclarations{HasParams: declared.HasParams}
				accepted("message "+v.MessageExpression, compiler.CompileCELExpression(message(v.MessageExpression), declared, environment.NewExpressions))
			}
		})
	}
}
