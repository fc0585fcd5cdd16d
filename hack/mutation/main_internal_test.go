package main

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What is split off a room still decides.
func TestPackagesBelowARoomAreRooms(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	for _, room := range rooms {
		var code, tests int // files of the room itself
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			folder, err := filepath.Rel(root, filepath.Dir(path))
			own, test := folder == room, strings.HasSuffix(path, "_test.go")
			switch {
			case own && test:
				tests++
			case own:
				code++
			case !test && !strings.HasSuffix(folder, "test") && !slices.Contains(rooms, folder):
				t.Errorf("%s is not in the list of rooms, as %s is", folder, room)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if code == 0 {
			t.Errorf("%s has no code", room)
		}
		if other := testsElsewhere[room]; tests == 0 && other == "" || other != "" && !slices.Contains(rooms, other) {
			t.Errorf("%s has no tests, and those of %q are none of it", room, other)
		}
	}
}
