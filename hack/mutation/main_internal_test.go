package main

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What is split off a package still decides.
func TestPackagesBelowAListedOneAreListed(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	for _, listed := range packages {
		var code, tests int // files of the package itself
		err := filepath.WalkDir(filepath.Join(root, listed), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			folder, err := filepath.Rel(root, filepath.Dir(path))
			own, test := folder == listed, strings.HasSuffix(path, "_test.go")
			switch {
			case own && test:
				tests++
			case own:
				code++
			case !test && !strings.HasSuffix(folder, "test") && !slices.Contains(packages, folder):
				t.Errorf("%s is not in the list of packages, as %s is", folder, listed)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if code == 0 {
			t.Errorf("%s has no code", listed)
		}
		if other := testsElsewhere[listed]; tests == 0 && other == "" || other != "" && !slices.Contains(packages, other) {
			t.Errorf("%s has no tests, and the tests of %q do not belong to it", listed, other)
		}
	}
}
