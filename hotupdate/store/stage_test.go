package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refit-project/refit/hotupdate/payload"
	"github.com/refit-project/refit/hotupdate/store"
)

func TestStageRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limits payload.Limits
		names  []string
		want   error
	}{
		"a name outside of the folder":    {names: []string{"../x"}, want: payload.ErrInvalid},
		"an absolute name":                {names: []string{"/x"}, want: payload.ErrInvalid},
		"the same name twice":             {names: []string{"a", "a"}, want: payload.ErrInvalid},
		"a file below a file":             {names: []string{"a", "a/b"}, want: payload.ErrInvalid},
		"a file in place of a folder":     {names: []string{"a/b", "a"}, want: payload.ErrInvalid},
		"more files than allowed":         {limits: payload.Limits{MaxFiles: 1}, names: []string{"a", "b"}, want: payload.ErrTooLarge},
		"more folders than allowed":       {limits: payload.Limits{MaxFiles: 3}, names: []string{"a/b/c/d"}, want: payload.ErrTooLarge},
		"more bytes than allowed":         {limits: payload.Limits{MaxUnpacked: 7}, names: []string{"a", "b"}, want: payload.ErrTooLarge},
		"nothing of what is just allowed": {limits: payload.Limits{MaxFiles: 2, MaxUnpacked: 8}, names: []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, t.TempDir())
			g, err := s.Stage(test.limits.WithDefaults())
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range test.names {
				if _, err = g.Put(file, 0, strings.NewReader("four")); err != nil {
					break
				}
			}
			if !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if err := g.Discard(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStageKeepsWhatAnUpdateDoesNotReplace(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	before := seal(t, s, map[string]string{"same": "1", "new": "1", "gone": "1", "dir/a": "1", "file": "1", "changed": "1"})
	removed := map[string]string{"changed": "another digest"}
	for _, f := range before.Files {
		if f.Name == "gone" {
			removed[f.Name] = f.SHA256
		}
	}
	g, err := s.Stage(payload.Limits{}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"new", "dir", "file/a"} {
		if _, err := g.Put(name, 0, strings.NewReader("2")); err != nil {
			t.Fatal(err)
		}
	}
	if mended, missing, err := g.Keep(before, removed, nil); err != nil || len(mended)+len(missing) > 0 {
		t.Fatal(err)
	}
	r, err := g.Seal(t.Context(), "v2", nil, store.Requested{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range r.Files {
		names = append(names, f.Name)
	}
	if want := []string{"changed", "dir", "file/a", "new", "same"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if err := s.Check(t.Context(), r); err != nil || !r.Kept || before.Kept {
		t.Errorf("%v; kept %t, before %t", err, r.Kept, before.Kept)
	}
	small, err := s.Stage(payload.Limits{MaxUnpacked: 5}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := small.Keep(before, nil, nil); !errors.Is(err, payload.ErrTooLarge) {
		t.Errorf("6 bytes are kept with a limit of 5: %v", err)
	}
}

// A Put that fails leaves a part of its file.
func TestDroppedFileIsNotPartOfTheRevision(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	g, err := s.Stage(payload.Limits{MaxUnpacked: 3}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Put("a", 0, strings.NewReader("four")); !errors.Is(err, payload.ErrTooLarge) {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing
		if err := g.Drop("a"); err != nil {
			t.Error(err)
		}
	}
	r, err := g.Seal(t.Context(), "v1", nil, store.Requested{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, store.FilesPath(r.ID), "a")); len(r.Files) != 0 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%+v, %v", r.Files, err)
	}
	if err := g.Discard(); err != nil {
		t.Error(err)
	}
	if found, err := s.Revision(r.ID); err != nil || found.ID != r.ID {
		t.Errorf("discarded although it is sealed: %v", err)
	}
}

func TestStageEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g, err := s.Stage(payload.Limits{}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Seal(ctx, "v1", nil, store.Requested{}); !errors.Is(err, context.Canceled) {
		t.Errorf("sealed: %v", err)
	}
	if err := g.Discard(); err != nil {
		t.Error(err)
	}
}

// panicking is a reader with an error in its code.
type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("wrong") }

// The panic ends one update, and not the next ones.
func TestPanicWhileAFileIsReadAffectsNoOther(t *testing.T) {
	t.Parallel()
	g, err := open(t, t.TempDir()).Stage(payload.Limits{}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, content io.Reader) (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v", r)
			}
		}()
		_, err = g.Put(name, 0, content)
		return err
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		if err := put(name, panicking{}); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if err := put("e", strings.NewReader("x")); err != nil {
		t.Error(err)
	}
}
