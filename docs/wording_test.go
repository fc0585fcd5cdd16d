package docs_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Constructions that Kubernetes' own code and documents do not use. The first letters are in brackets, so that this file has none.
var unusual = regexp.MustCompile(`\b([t]old of|[t]old by|[b]ut for|[a]s when|[t]hose of|[t]hat of)\b`)

// Comments, messages and pages are in the words of Kubernetes' documentation.
func TestWordsOfTheProductAndOfPagesArePlain(t *testing.T) {
	t.Parallel()
	tracked := exec.CommandContext(t.Context(), "git", "ls-files", "--", "*.go", "*.md", "*.tmpl", "*.yaml", "*.tpl", "*.sh")
	tracked.Dir = ".."
	names, err := tracked.Output()
	if err != nil {
		t.Skipf("git ls-files: %v", err)
	}
	files := strings.Fields(string(names))
	if len(files) < 1000 {
		t.Fatalf("only %d files", len(files))
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/") || name == "CHANGELOG.md" {
			continue
		}
		content, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range unusual.FindAllIndex(content, -1) {
			t.Errorf("%s:%d: %q", name, bytes.Count(content[:at[0]], []byte("\n"))+1, content[at[0]:at[1]])
		}
	}
}

const (
	maxParagraph = 600
	maxCell      = 400
)

// Paragraphs and cells of tables are short; rules are lists.
func TestParagraphsAndCellsAreShort(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		name := strings.TrimPrefix(page, "../")
		if name == "CHANGELOG.md" || name == "docs/status.md" || strings.HasPrefix(name, "docs/reference/api-") {
			continue
		}
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range passages(string(content)) {
			if n := len(one.text); n > one.limit {
				t.Errorf("%s: %d characters, want at most %d: %.80s", name, n, one.limit, one.text)
			}
		}
	}
}

type passage struct {
	text  string
	limit int
}

var (
	listItem = regexp.MustCompile(`^\s*([-*]|\d+\.) `)
	example  = regexp.MustCompile("(?ms)^ *```.*?^ *```$") // also in an item of a list
)

// passages returns the paragraphs, the items of lists and the cells of tables of a page.
func passages(content string) []passage {
	var all []passage
	current := ""
	end := func() {
		all, current = append(all, passage{current, maxParagraph}), ""
	}
	for line := range strings.Lines(example.ReplaceAllString(content, "")) {
		text := strings.TrimSpace(line)
		switch {
		case text == "" || strings.HasPrefix(text, "#"):
			end()
		case strings.HasPrefix(text, "|"):
			end()
			for cell := range strings.SplitSeq(strings.ReplaceAll(text, `\|`, ""), "|") {
				all = append(all, passage{strings.TrimSpace(cell), maxCell})
			}
		default:
			if listItem.MatchString(line) {
				end()
			}
			current = strings.TrimSpace(current + " " + text)
		}
	}
	end()
	return all
}
