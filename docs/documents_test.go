package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	testInText = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	testOfFile = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(`)
)

// Tests that the documents name exist.
func TestTestsThatDocumentsNameExist(t *testing.T) {
	t.Parallel()
	exists := map[string]bool{}
	walkGo(t, func(path string, content []byte) {
		if strings.HasSuffix(path, "_test.go") {
			for _, found := range testOfFile.FindAllSubmatch(content, -1) {
				exists[string(found[1])] = true
			}
		}
	})
	named := 0
	for _, document := range pages(t) {
		content, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range testInText.FindAllStringSubmatch(string(content), -1) {
			if named++; !exists[found[1]] {
				t.Errorf("%s names %s, which does not exist", document, found[1])
			}
		}
	}
	if named < 20 {
		t.Errorf("only %d tests are named: the expression does not find them", named)
	}
}
