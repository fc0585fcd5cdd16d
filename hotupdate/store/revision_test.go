package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/refit-project/refit/hotupdate/store"
)

// The application can write to the folder: what it has changed is not used again.
func TestChangedRevisionsAreFound(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, revision string) error{
		"content":         func(_ *testing.T, at string) error { return os.WriteFile(at+"/files/a", []byte("x"), 0o600) },
		"file is removed": func(_ *testing.T, at string) error { return os.Remove(at + "/files/a") },
		"file is a link": func(_ *testing.T, at string) error {
			return errors.Join(os.Remove(at+"/files/a"), os.Symlink("/etc/passwd", at+"/files/a"))
		},
		"file is a FIFO": func(_ *testing.T, at string) error {
			return errors.Join(os.Remove(at+"/files/a"), syscall.Mkfifo(at+"/files/a", 0o600))
		},
		"manifest":         func(_ *testing.T, at string) error { return os.WriteFile(at+"/manifest.json", []byte("{"), 0o600) },
		"another manifest": func(_ *testing.T, at string) error { return os.WriteFile(at+"/manifest.json", []byte("{}"), 0o600) },
		"manifest names a file outside": func(_ *testing.T, at string) error {
			b, err := os.ReadFile(at + "/manifest.json")
			return errors.Join(err, os.WriteFile(at+"/manifest.json", []byte(strings.ReplaceAll(string(b), `"name":"a"`, `"name":"../a"`)), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir)
			r := seal(t, s, map[string]string{"a": "1"})
			if err := change(t, filepath.Join(dir, filepath.Dir(store.FilesPath(r.ID)))); err != nil {
				t.Fatal(err)
			}
			found, err := s.Revision(r.ID)
			if err == nil {
				err = s.Check(t.Context(), found)
			}
			if !errors.Is(err, store.ErrTampered) {
				t.Errorf("%v, want ErrTampered", err)
			}
		})
	}
}

func TestRevisionsAreFoundByTheirID(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	first, second := seal(t, s, map[string]string{"a": "1"}), seal(t, s, map[string]string{"a": "2"})
	if err := s.Prune([]string{second.ID}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{first.ID, "", "../../etc", "000009-0123456789ab"} {
		if _, err := s.Revision(id); !errors.Is(err, store.ErrUnknownRevision) {
			t.Errorf("revision %q: %v, want ErrUnknownRevision", id, err)
		}
	}
	s.Close()
	again := open(t, dir)
	if diff, err := again.Revision(second.ID); err != nil || diff.Digest != second.Digest {
		t.Errorf("after a restart: %+v, %v", diff, err)
	}
	if next := seal(t, again, map[string]string{"a": "1"}); next.ID <= second.ID {
		t.Errorf("ID %s after a restart, want one after %s", next.ID, second.ID)
	}
}

func TestSpaceIsForTheNewestRevisions(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	shared := strings.Repeat("s", 100)
	var ids []string
	for _, own := range []string{"1", "2", "3"} {
		ids = append(ids, seal(t, s, map[string]string{"shared": shared, "own": strings.Repeat(own, 10)}).ID)
	}
	for name, test := range map[string]struct {
		current int
		most    int64
		want    []string
	}{
		"all fit":             {2, 130, ids},
		"the oldest does not": {2, 129, ids[1:]},
		"one fits":            {2, 110, ids[2:]},
		"current stays, also if it is the oldest":    {0, 110, []string{ids[0], ids[2]}},
		"current stays, also if it is larger itself": {2, 1, ids[2:]},
	} {
		if got := s.Fit(ids, ids[test.current], test.most); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
