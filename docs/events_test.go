package docs_test

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var reasonWord = regexp.MustCompile(`^[A-Z][a-z]+[A-Za-z]*$`)

// sentReasons are the reasons of Events that the programs send, as far as they are literals or constants where they are
// sent. Every other string that looks like a reason is in known.
func sentReasons(t *testing.T) (sent []string, known map[string]bool) {
	t.Helper()
	known = map[string]bool{}
	walkProduct(t, func(_ string, file *ast.File) {
		ast.Inspect(file, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.BasicLit:
				known[text(n)] = true
			case *ast.ValueSpec:
				// Constants of Events are called eventX wherever they are.
				if len(n.Values) == 1 && strings.HasPrefix(n.Names[0].Name, "event") && reasonWord.MatchString(text(n.Values[0])) {
					sent = append(sent, text(n.Values[0]))
				}
			case *ast.CallExpr:
				if reason := reasonOf(n); reason != "" {
					sent = append(sent, reason)
				}
			}
			return true
		})
	})
	return sent, known
}

// reasonOf is the reason in a call that sends an Event, if it is a literal.
func reasonOf(call *ast.CallExpr) string {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	at, ok := map[string]int{"Event": 2, "Eventf": 3, "Tell": 1, "tell": 1}[function.Sel.Name]
	if !ok || len(call.Args) <= at {
		return ""
	}
	if reason := text(call.Args[at]); reasonWord.MatchString(reason) {
		return reason
	}
	return ""
}

// Events are what a user sees first. The page lists those that the programs send, and no others.
func TestEventsAreDocumented(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("reference/events.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+`) \\|").FindAllStringSubmatch(string(content), -1) {
		for _, reason := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(row[1], -1) {
			documented = append(documented, reason[1])
		}
	}
	sent, known := sentReasons(t)
	if len(sent) < 20 || len(documented) < 30 {
		t.Errorf("only %d reasons in the sources, and %d in the page", len(sent), len(documented))
	}
	for _, reason := range sent {
		if !slices.Contains(documented, reason) {
			t.Errorf("docs/reference/events.md: reason %s is missing", reason)
		}
	}
	for _, reason := range documented {
		// A result is reported with its state behind what it is of, as HotUpdate and Failed.
		of := strings.TrimSuffix(strings.TrimSuffix(reason, "Failed"), "Succeeded")
		if !known[reason] && !known[of] {
			t.Errorf("docs/reference/events.md: no program sends %s", reason)
		}
	}
}
