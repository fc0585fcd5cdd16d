package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPictureOfArchitectureIsTrue(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(architecture)
	before, rest, found := strings.Cut(string(content), pictureBegin)
	_, after, closed := strings.Cut(rest, pictureEnd)
	if err != nil || !found || !closed {
		t.Fatalf("no picture in %s, %v: there has to be the line %s", architecture, err, pictureBegin)
	}
	drawn := before + pictureBegin + picture() + pictureEnd + after
	if *update && drawn != string(content) {
		err = os.WriteFile(architecture, []byte(drawn), 0o600)
	} else if drawn != string(content) {
		t.Errorf("the picture in %s is outdated: go test ./docs -run Picture -update", architecture)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// picture draws a box for each layer, and for each capability the imports of the ones that it uses.
func picture() string {
	var b strings.Builder
	b.WriteString("flowchart TB\n")
	for i, layer := range layers {
		names := strings.Fields(layer.folders)
		if layer.folders == "CAPABILITY" {
			fmt.Fprintf(&b, "  subgraph row%d[%q]\n    direction LR\n", i, layer.name)
			for _, name := range slices.Sorted(maps.Keys(capabilities)) {
				fmt.Fprintf(&b, "    %s\n", name)
				for _, other := range strings.Fields(capabilities[name]) {
					fmt.Fprintf(&b, "    %s --> %s\n", name, other)
				}
			}
			b.WriteString("  end\n")
		} else {
			fmt.Fprintf(&b, "  row%d[\"%s: %s\"]\n", i, layer.name, strings.ReplaceAll(strings.Join(names, ", "), "CAPABILITY/", ""))
		}
		if i > 0 {
			fmt.Fprintf(&b, "  row%d --> row%d\n", i-1, i)
		}
	}
	return b.String()
}

// walkGo calls a function for each Go file of the project.
func walkGo(t *testing.T, do func(path string, content []byte)) {
	t.Helper()
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		name := filepath.Base(path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || slices.Contains([]string{"dist", "testdata", "components"}, name)):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		content, err := fs.ReadFile(root, path)
		if err == nil {
			do(path, content)
		}
		return err
	})
	if err != nil {
		t.Fatalf("read the Go files: %v", err)
	}
}

// walkProduct calls a function for each Go file of the programs, without tests.
func walkProduct(t *testing.T, do func(path string, file *ast.File)) {
	t.Helper()
	walkGo(t, func(path string, content []byte) {
		if row, _ := place(filepath.Dir(path)); row < 0 || strings.HasSuffix(path, "_test.go") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, content, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		do(path, file)
	})
}
