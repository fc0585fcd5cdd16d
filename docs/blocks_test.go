package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refit-project/refit/test/kit/markdown"
)

// languages of blocks. Those without one are made by programs, as in cli.md.
var languages = []string{"sh", "yaml", "text", "json", "go", "lua", "mermaid"}

func blocks(t *testing.T) []markdown.Block {
	t.Helper()
	var all []markdown.Block
	for _, page := range pages(t) {
		of, err := markdown.Read(page)
		if err != nil {
			t.Error(err)
		}
		all = append(all, of...)
	}
	if len(all) < 50 {
		t.Errorf("only %d blocks", len(all))
	}
	return all
}

// The commands of a page are in fenced blocks, where users and these tests find them.
func TestCodeIsInFencedBlocks(t *testing.T) {
	t.Parallel()
	list := regexp.MustCompile(`^ *([-*]|[0-9]+\.) `)
	for _, page := range pages(t) {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		before := ""
		for line := range strings.SplitSeq(fencedAnywhere.ReplaceAllString(string(content), ""), "\n") {
			if strings.HasPrefix(line, "    ") && before == "" && !list.MatchString(line) {
				t.Errorf("%s: %q is an indented block", page, line)
			}
			before = line
		}
	}
}

var fencedAnywhere = regexp.MustCompile("(?ms)^ *```.*?^ *```$")

// Every command of the documents is run by a test, or the page says why not.
func TestEveryCommandHasATest(t *testing.T) {
	t.Parallel()
	tests := testNames(t)
	targets := makeTargets(t)
	for _, block := range blocks(t) {
		if !slices.Contains(languages, block.Language) && filepath.Base(block.Page) != "cli.md" {
			t.Errorf("%s: language %q: want one of %q", block, block.Language, languages)
		}
		if block.Mark == markdown.By && !slices.Contains(tests, block.Value) {
			t.Errorf("%s: there is no test %s", block, block.Value)
		}
		if block.Language != "sh" {
			continue
		}
		if block.Mark == "" || block.Mark == markdown.File {
			t.Errorf("%s: a block of commands needs a comment above it that says which test runs it, see CONTRIBUTING.md", block)
		}
		commands, err := markdown.Commands(block.Text)
		if err != nil {
			t.Errorf("%s: %v", block, err)
		}
		for _, command := range commands {
			if len(command) > 1 && command[0] == "make" && !slices.Contains(targets, command[1]) {
				t.Errorf("%s: there is no target %s", block, command[1])
			}
			for _, word := range command {
				checkPath(t, block, word)
			}
		}
	}
}

// checkPath checks a word that names a file of the checkout.
func checkPath(t *testing.T, block markdown.Block, word string) {
	t.Helper()
	_, word, _ = strings.Cut("="+word, "=")
	if !regexp.MustCompile(`^(deploy|hack|examples|docs|cmd)/[A-Za-z0-9./_*-]+$`).MatchString(word) {
		return
	}
	found, err := filepath.Glob(filepath.Join("..", word))
	if err != nil || len(found) == 0 {
		t.Errorf("%s: there is no %s", block, word)
	}
}

// testNames are the tests of all modules of the repository.
func testNames(t *testing.T) []string {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
	var names []string
	for _, pattern := range []string{"*_test.go", "*/*_test.go", "*/*/*_test.go", "*/*/*/*_test.go", "*/*/*/*/*_test.go"} {
		files, err := filepath.Glob(filepath.Join("..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range function.FindAllStringSubmatch(string(content), -1) {
				names = append(names, match[1])
			}
		}
	}
	return names
}

func makeTargets(t *testing.T) []string {
	t.Helper()
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, match := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, match[1])
	}
	benchmarks, err := os.ReadFile("../test/bench/run.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`(?m)^# make (bench-[a-z]+):`).FindAllStringSubmatch(string(benchmarks), -1) {
		targets = append(targets, match[1])
	}
	return targets
}
