package docs_test

import (
	"go/ast"
	"strings"
	"testing"
)

// Anyone in the cluster can send a review (security.md): every webhook is registered with a bound for what it reads.
func TestWebhooksBoundTheirReviews(t *testing.T) {
	t.Parallel()
	bounded := 0
	walkProduct(t, func(path string, file *ast.File) {
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) != 2 || called(call) != "Register" {
				return true
			}
			handler, ok := call.Args[1].(*ast.CallExpr)
			if ok && path == "manager/callers/callers.go" && called(handler) == "Check" {
				return true // in front of what is registered elsewhere
			}
			if !ok || !strings.HasSuffix(called(handler), "Reviews") {
				t.Errorf("%s registers a webhook without guardcontrol.BoundReviews or CheckReviews", path)
			}
			bounded++
			return true
		})
	})
	if bounded < 8 {
		t.Errorf("only %d webhooks are found", bounded)
	}
}

// called returns the name of the method or function of a package that is called.
func called(call *ast.CallExpr) string {
	if function, ok := call.Fun.(*ast.SelectorExpr); ok {
		return function.Sel.Name
	}
	return ""
}
