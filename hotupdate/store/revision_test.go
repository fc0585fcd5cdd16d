package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/refit-project/refit/hotupdate/manifest"
	"github.com/refit-project/refit/hotupdate/payload"
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
		"manifest makes a file executable": func(_ *testing.T, at string) error {
			b, err := os.ReadFile(at + "/manifest.json")
			return errors.Join(err, os.WriteFile(at+"/manifest.json", []byte(strings.Replace(string(b), `"sha256":`, `"executable":true,"sha256":`, 1)), 0o600))
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
	if !strings.HasPrefix(first.ID, "000001-") || !strings.HasPrefix(second.ID, "000002-") {
		t.Errorf("IDs %s and %s are not in the order of time", first.ID, second.ID)
	}
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

// IDs get a digit more after the 999,999th revision.
func TestNumbersOfRevisionsGoOnAfterAMillion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, id := range []string{"999999-0123456789ab", "1000000-0123456789ab", "no-revision"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(store.FilesPath(id))), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if r := seal(t, open(t, dir), map[string]string{"a": "1"}); !strings.HasPrefix(r.ID, "1000001-") {
		t.Errorf("ID %s", r.ID)
	}
}

func TestFilesHaveTheirModes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	digests := map[string]bool{}
	for mode, want := range map[os.FileMode]os.FileMode{0: 0o644, 0o644: 0o644, 0o755: 0o755, 0o600: 0o600} {
		g, err := s.Stage(payload.Limits{}.WithDefaults())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Put("a", mode, strings.NewReader("1")); err != nil {
			t.Fatal(err)
		}
		r, err := g.Seal(t.Context(), "v1", nil, store.Requested{})
		if err != nil {
			t.Fatal(err)
		}
		digests[r.Digest] = true
		if info, err := os.Stat(filepath.Join(dir, store.FilesPath(r.ID), "a")); err != nil || info.Mode().Perm() != want {
			t.Errorf("mode %o: %v, %v", mode, info, err)
		}
		if found, err := s.Revision(r.ID); err != nil || s.Check(t.Context(), found) != nil {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if len(digests) != 3 {
		t.Errorf("%d digests for 3 different modes", len(digests))
	}
}

func TestSpaceIsForTheNewestRevisions(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	const size = 2 << 20 // smaller ones are not shared
	shared := strings.Repeat("s", size)
	var ids []string
	var all []store.Revision
	for _, own := range []string{"1", "2", "3"} {
		files := map[string]string{"own": strings.Repeat(own, 10)}
		if len(all) == 0 {
			files["shared"] = shared
		}
		all = append(all, seal(t, s, files, all[max(len(all)-1, 0):]...))
		ids = append(ids, all[len(all)-1].ID)
	}
	for name, test := range map[string]struct {
		current int
		most    int64
		want    []string
	}{
		"all fit":             {2, size + 30, ids},
		"the oldest does not": {2, size + 29, ids[1:]},
		"one fits":            {2, size + 10, ids[2:]},
		"current stays, also if it is the oldest":    {0, size + 10, []string{ids[0], ids[2]}},
		"current stays, also if it is larger itself": {2, 1, ids[2:]},
	} {
		if got := s.Fit(ids, ids[test.current], test.most); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	copied := seal(t, s, map[string]string{"shared": shared}).ID
	if got := s.Fit([]string{ids[2], copied}, copied, 2*size+9); !slices.Equal(got, []string{copied}) {
		t.Errorf("a copy of what another revision has: %q, want %q alone", got, copied)
	}
	lost := slices.Insert(slices.Clone(ids), 2, "000009-0123456789ab") // takes no space
	if got := s.Fit(lost, ids[2], size+30); !slices.Equal(got, lost) {
		t.Errorf("a revision that cannot be read: %q, want %q", got, lost)
	}
}

// Digests are in manifests that earlier versions have written, and in requests.
func TestDigestOfASetIsTheSameInEveryVersion(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	both, one := seal(t, s, map[string]string{"a": "1", "dir/b": "2"}), seal(t, s, map[string]string{"dir/b": "2"})
	if want := "9c4a18e996682aaa3279721768e84690735b8ea8021933f2a50bed28118367ee"; both.Digest != want {
		t.Errorf("digest %s, want %s", both.Digest, want)
	}
	if got := manifest.Digest(slices.DeleteFunc(slices.Clone(both.Files), func(f store.File) bool { return f.Name == "a" })); got != one.Digest {
		t.Errorf("without a: %s, want %s", got, one.Digest)
	}
}
