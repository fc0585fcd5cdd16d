package refit_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest  = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	testOfFile = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(`)
)

// What the documents promise is promised by tests, whose names they give.
func TestTestsThatDocumentsNameExist(t *testing.T) {
	t.Parallel()
	exists := map[string]bool{}
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var documents []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch name := filepath.Base(path); {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "dist"):
			return filepath.SkipDir
		case strings.HasSuffix(name, "_test.go"):
			for _, found := range testOfFile.FindAllStringSubmatch(read(path), -1) {
				exists[found[1]] = true
			}
		case strings.HasPrefix(path, "docs/") && strings.HasSuffix(name, ".md"):
			documents = append(documents, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, document := range documents {
		for _, found := range namedTest.FindAllStringSubmatch(read(document), -1) {
			if named++; !exists[found[1]] {
				t.Errorf("%s names %s, which does not exist", document, found[1])
			}
		}
	}
	if named < 20 {
		t.Errorf("only %d tests are named: the expression does not find them", named)
	}
}
