package refit_test

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	maxFileLines    = 300
	maxPackageLines = 1200 // without tests and generated code
)

// larger are packages that may have more lines.
var larger = map[string]int{
	"api/v1beta1": 5000, // a version of the API is one package
}

func TestFilesAndPackagesStaySmall(t *testing.T) {
	t.Parallel()
	packages := map[string]int{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		name := filepath.Base(path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || slices.Contains([]string{"dist", "testdata"}, name)):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "zz_generated"):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines := bytes.Count(content, []byte("\n"))
		if lines > maxFileLines {
			t.Errorf("%s has %d lines, at most %d: split it by what it is about", path, lines, maxFileLines)
		}
		if !strings.HasSuffix(name, "_test.go") {
			packages[filepath.Dir(path)] += lines
		}
		return nil
	})
	if err != nil {
		t.Fatalf("read the files: %v", err)
	}
	for _, folder := range slices.Sorted(maps.Keys(packages)) {
		if most := max(larger[folder], maxPackageLines); packages[folder] > most {
			t.Errorf("%s has %d lines without tests, at most %d: split the package", folder, packages[folder], most)
		}
	}
}
