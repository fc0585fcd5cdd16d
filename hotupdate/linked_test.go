package hotupdate_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refit-project/refit/hotupdate"
)

// reads compares what the program reads at name, which may be below a link to a folder.
func (b *bench) reads(t *testing.T, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(b.dir, name)); string(got) != want {
		t.Errorf("%s has %q, %v; want %q", name, got, err, want)
	}
}

// A folder of the program may be a link to another folder at any depth: an update that is accepted is what the program reads.
func TestFileBelowALinkedFolder(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]string{"at the same depth": "other", "deeper": "releases/v1", "by two links": "again"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil, nil)
			folder := filepath.Join(b.dir, to)
			if to == "again" {
				folder = filepath.Join(b.dir, "releases/v1")
			}
			err := errors.Join(os.MkdirAll(folder, 0o755), os.Symlink(to, filepath.Join(b.dir, "current")), os.WriteFile(filepath.Join(folder, "a"), []byte("of the program"), 0o644))
			if to == "again" {
				err = errors.Join(err, os.Symlink("releases/v1", filepath.Join(b.dir, "again")))
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = b.Apply(t.Context(), inline("v1", files{"current/a": "new", "current/b": "new"}))
			if err == nil {
				b.reads(t, "current/a", "new")
				b.reads(t, "current/b", "new")
				return
			}
			if !errors.Is(err, hotupdate.ErrInvalid) {
				t.Errorf("err = %v, want ErrInvalid", err)
			}
			b.reads(t, "current/a", "of the program")
		})
	}
}

// A file of the program may be a link to another one: after an update of it has failed, the program reads what it read before.
func TestLinkOfTheProgramSurvivesAFailedUpdate(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	if err := errors.Join(os.WriteFile(filepath.Join(b.dir, "base"), []byte("base"), 0o644), os.Symlink("base", filepath.Join(b.dir, "a"))); err != nil {
		t.Fatal(err)
	}
	b.apply(t, inline("v1", files{"a": "new"}))
	b.reads(t, "a", "new")
	if _, err := b.Rollback(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	b.reads(t, "a", "base")
}

// The program may make a file as large as the disk allows, of holes: an update must not read it.
func TestHugeFileOfTheProgramDelaysNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	large := strings.Repeat("x", 2<<20)
	b.apply(t, inline("v1", files{"a": large, "b": "1"}))
	before, err := filepath.EvalSymlinks(filepath.Join(b.dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	b.apply(t, inline("v2", files{"a": large, "b": "2"}))
	grow := func(path string) {
		if err := os.Truncate(path, 1<<38); err != nil {
			t.Fatal(err)
		}
	}
	grow(before)
	if _, err := b.Rollback(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	b.reads(t, "b", "1")
	grow(filepath.Join(b.dir, "a"))
	keeping := inline("v3", files{"b": "3"})
	keeping.Keep = true
	b.apply(t, keeping)
	b.reads(t, "a", large)
	foreign := filepath.Join(b.dir, "foreign")
	if err := os.WriteFile(foreign, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	grow(foreign)
	if _, err := b.Apply(t.Context(), inline("v4", files{"foreign": "4"})); !errors.Is(err, hotupdate.ErrTooLarge) {
		t.Errorf("an update that replaces it: %v", err)
	}
}
