package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

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
