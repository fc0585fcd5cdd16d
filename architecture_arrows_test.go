package refit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/refit-project/refit/"

func TestArrowsPointDownAndAreUsed(t *testing.T) {
	t.Parallel()
	for _, fault := range judge(rows, split, imports(t)) {
		t.Error(fault)
	}
}

// imports maps each folder with Go files to the folders of ours that it imports, over all our modules. It reads the
// files itself, so that go test sees what the answer depends on and does not give it from its cache.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		name := filepath.Base(path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || slices.Contains([]string{"dist", "testdata", "components"}, name)):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder := filepath.Dir(path)
		found[folder] = append(found[folder], ours(file.Imports)...)
		return nil
	})
	if err != nil {
		t.Fatalf("read the imports: %v", err)
	}
	return found
}

// judge says what is wrong with the imports of folders, or with the table.
func judge(table []row, split []string, imports map[string][]string) []string {
	var faults []string
	used := map[[2]string]bool{}
	exists := map[string]bool{}
	for _, folder := range slices.Sorted(maps.Keys(imports)) {
		from, at := find(table, folder)
		if at < 0 {
			faults = append(faults, folder+" is in no room of architecture_test.go")
			continue
		}
		exists[from.path] = true
		if i := slices.IndexFunc(split, func(top string) bool { return within(folder, top) }); i >= 0 && from.path != folder {
			faults = append(faults, fmt.Sprintf("%s is a part of %s and needs a room of its own in architecture_test.go", folder, split[i]))
		}
		for _, imported := range imports[folder] {
			to, _ := find(table, imported)
			if to.path == from.path {
				continue
			}
			if !slices.Contains(strings.Fields(from.imports), to.path) {
				faults = append(faults, fmt.Sprintf("%s imports %s: %s may import only %s", folder, imported, from.path, from.imports))
			}
			used[[2]string{from.path, to.path}] = true
		}
	}
	for at, row := range table {
		for _, room := range row.rooms {
			faults = append(faults, room.faults(table, at, used)...)
			if !exists[room.path] && (room.imports != "" || room.toCome == "") {
				faults = append(faults, fmt.Sprintf("%s: there is no such folder", room.path))
			}
		}
	}
	return faults
}

// faults are what is wrong with a room's own line of the table.
func (r room) faults(table []row, at int, used map[[2]string]bool) []string {
	var faults []string
	for _, to := range strings.Fields(r.imports + " " + r.toCome) {
		target, below := find(table, to)
		switch {
		case below < 0 || target.path != to:
			faults = append(faults, fmt.Sprintf("%s -> %s: there is no such room", r.path, to))
		case below <= at:
			faults = append(faults, fmt.Sprintf("%s -> %s does not point down", r.path, to))
		case table[below].tools && !table[at].tools:
			faults = append(faults, fmt.Sprintf("%s -> %s: only tests and tools may import it", r.path, to))
		}
	}
	for _, to := range strings.Fields(r.imports) {
		if !used[[2]string{r.path, to}] {
			faults = append(faults, fmt.Sprintf("%s -> %s is allowed and not used: take it out of architecture_test.go", r.path, to))
		}
	}
	for _, to := range strings.Fields(r.toCome) {
		if used[[2]string{r.path, to}] {
			faults = append(faults, fmt.Sprintf("%s -> %s is used: it is no longer to come", r.path, to))
		}
	}
	if (r.toCome == "") != (r.why == "") {
		faults = append(faults, r.path+": what is to come needs a why, and a why something to come")
	}
	return faults
}

func ours(specs []*ast.ImportSpec) []string {
	var folders []string
	for _, spec := range specs {
		path, err := strconv.Unquote(spec.Path.Value)
		if folder, found := strings.CutPrefix(path, module); err == nil && found {
			folders = append(folders, folder)
		}
	}
	return folders
}

type goPackage struct {
	ImportPath string
	Deps       []string
}

func TestForbiddenDependencies(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"go.mod", "go.sum"} {
		if _, err := os.ReadFile(name); err != nil { // see imports: the answer of go list depends on them
			t.Fatal(err)
		}
	}
	imports(t)
	checked := 0
	for _, p := range dependencies(t) {
		not := maps.Clone(forbiddenEverywhere)
		if own, ok := forbidden[strings.TrimPrefix(p.ImportPath, module)]; ok {
			maps.Copy(not, own)
			checked++
		}
		for _, dep := range p.Deps {
			for path, why := range not {
				if within(dep, path) {
					t.Errorf("%s depends on %s: %s", p.ImportPath, dep, why)
				}
			}
		}
	}
	if checked != len(forbidden) {
		t.Errorf("%d of the %d packages with forbidden dependencies were found", checked, len(forbidden))
	}
}

func dependencies(t *testing.T) []goPackage {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Deps", "./...", module+"api/...")
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []goPackage
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("read go list: %v", err)
		}
		packages = append(packages, p)
	}
}
