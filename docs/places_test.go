package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	quoted     = regexp.MustCompile("`([^`]+)`")
	pathToken  = regexp.MustCompile(`^[a-z][A-Za-z0-9_]*(/[A-Za-z0-9_.*-]+)*/?$`)
	identifier = regexp.MustCompile(`^([A-Z][a-z]+|[a-z]+[A-Z])[A-Za-z]*$`)
)

// The folders and files to which the tables for contributors refer exist, and declare the names that stand beside them.
func TestPlacesForContributorsExist(t *testing.T) {
	t.Parallel()
	places, names := 0, 0
	for page, sections := range map[string][2]string{
		"architecture.md":    {"## Where to find things", "## Layers"},
		"../CONTRIBUTING.md": {"## Where things go", "## What a change brings"},
	} {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		_, section, _ := strings.Cut(string(content), sections[0])
		section, _, found := strings.Cut(section, sections[1])
		if !found {
			t.Fatalf("%s has no sections %q", page, sections)
		}
		for row := range strings.Lines(section) {
			var folders []string
			var wanted []string
			for _, token := range quoted.FindAllStringSubmatch(row, -1) {
				switch name := token[1]; {
				case strings.Contains(name, "PROGRAM"):
				case pathToken.MatchString(name) && (strings.Contains(name, "/") || exists(name)):
					if places++; !exists(name) {
						t.Errorf("%s: %s does not exist", page, name)
					}
					folders = append(folders, name)
				case identifier.MatchString(name):
					wanted = append(wanted, name)
				}
			}
			for _, name := range wanted {
				if names++; len(folders) > 0 && !declared(t, folders, name) {
					t.Errorf("%s: %s is not declared in %q", page, name, folders)
				}
			}
		}
	}
	if places < 40 || names < 15 {
		t.Errorf("only %d places and %d names: the expressions do not find them", places, names)
	}
}

func exists(pattern string) bool {
	found, err := filepath.Glob(filepath.Join("..", pattern))
	return err == nil && len(found) > 0
}

// declared reports whether a Go file of one of the folders, or one of the files, declares a name.
func declared(t *testing.T, folders []string, name string) bool {
	t.Helper()
	declaration := regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|type |const |var |\t)` + name + `\b`)
	for _, folder := range folders {
		files := []string{filepath.Join("..", folder)}
		if !strings.HasSuffix(folder, ".go") {
			files, _ = filepath.Glob(filepath.Join("..", folder, "*.go"))
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if declaration.Match(content) {
				return true
			}
		}
	}
	return false
}
