package docs_test

import (
	"go/ast"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// guarded is what the sources of a folder say about the places where faults are counted.
type guarded struct {
	imports   map[string]bool // folders of this module
	constants map[string]string
	used      []ast.Expr // places that are passed to a guard
	declared  []string   // the variable places
}

// argumentOf returns the place that a call passes to a guard; nil for other calls.
func argumentOf(call *ast.CallExpr) ast.Expr {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	of, _ := function.X.(*ast.Ident)
	ofPackage := of != nil && of.Name == "guard"
	switch name := function.Sel.Name; {
	case (name == "Do" || name == "Try") && len(call.Args) == 3:
		return call.Args[0]
	case name == "Sift" && ofPackage:
		return call.Args[1]
	case name == "Within" && ofPackage:
		return call.Args[3]
	}
	return nil
}

// add reads the constants, the variable places and the calls of one file.
func (g *guarded) add(file *ast.File) {
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if folder, ours := strings.CutPrefix(imported, modulePath); ours {
			g.imports[folder] = true
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i >= len(n.Values) {
					break
				}
				g.constants[name.Name] = text(n.Values[i])
				if name.Name == "places" {
					g.declared = texts(n.Values[i])
				}
			}
		case *ast.CallExpr:
			if place := argumentOf(n); place != nil {
				g.used = append(g.used, place)
			}
		}
		return true
	})
}

// below returns the folders that a folder imports, directly and indirectly, and itself.
func below(folders map[string]*guarded, folder string, seen map[string]bool) map[string]bool {
	if folders[folder] != nil && !seen[folder] {
		seen[folder] = true
		for imported := range folders[folder].imports {
			below(folders, imported, seen)
		}
	}
	return seen
}

// Prometheus sees no increase in the first sample of a counter: without its series from the start, the first fault of a place
// raises no alert.
func TestEachPlaceOfFaultsIsCountedFromTheStart(t *testing.T) {
	t.Parallel()
	folders := map[string]*guarded{}
	walkProduct(t, func(path string, file *ast.File) {
		folder := filepath.Dir(path)
		if folder == "internal/guard" { // there the place is a parameter
			return
		}
		if folders[folder] == nil {
			folders[folder] = &guarded{imports: map[string]bool{}, constants: map[string]string{}}
		}
		folders[folder].add(file)
	})
	for _, program := range []string{"daemon", "manager", "sidecarmode"} {
		used := map[string]bool{}
		for folder := range below(folders, program, map[string]bool{}) {
			for _, place := range folders[folder].used {
				name := text(place)
				if constant, ok := place.(*ast.Ident); ok {
					name = folders[folder].constants[constant.Name]
				}
				if name == "" {
					t.Errorf("%s: a place that is neither a literal nor a constant of its package", folder)
				}
				used[name] = true
			}
		}
		if diff := gocmp.Diff(slices.Sorted(maps.Keys(used)), folders[program].declared); diff != "" {
			t.Errorf("%s: variable places (-used +declared):\n%s", program, diff)
		}
	}
}
