package hotupdate_test

import (
	"archive/tar"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/refit-project/refit/hotupdate"
)

// A folder becomes a file and the other way round, also if other files are kept, and a roll back and a restart restore the
// previous files.
func TestAFolderBecomesAFileAndAFileAFolder(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]bool{"whole set": false, "other files are kept": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil, nil)
			b.apply(t, inline("v1", files{"a/b/c": "1", "a/d": "1", "e": "1", "f": "1"}))
			next := inline("v2", files{"a": "2", "e/g": "2"})
			want := files{"a": "2", "e/g": "2"}
			if next.Keep = keep; keep {
				want["f"] = "1"
			}
			b.apply(t, next)
			b.check(t, want)
			if _, err := b.Rollback(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			b.check(t, files{"a/b/c": "1", "a/d": "1", "e": "1", "f": "1"})
			if _, err := b.Rollback(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			b.Close()
			b.open(t, nil)
			b.check(t, want)
		})
	}
}

// A kill at any step while a folder becomes a file leaves something that the next start repairs.
func TestAKillWhileAFolderBecomesAFileIsRepaired(t *testing.T) {
	t.Parallel()
	before, after := files{"a/b": "1", "a/c/d": "1", "e": "1"}, files{"a": "2", "e/f": "2"}
	for last := 1; ; last++ {
		b := newBench(t, nil, nil)
		b.apply(t, inline("v1", before))
		b.Close()
		n, ended := 0, false
		func() {
			defer func() { _ = recover() }()
			u, err := hotupdate.OpenWithSteps(t.Context(), hotupdate.Config{Dir: b.dir}, func(string) {
				if n++; n == last {
					panic("killed")
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
			_, err = u.Apply(t.Context(), inline("v2", after))
			ended = err == nil
		}()
		if ended {
			break
		}
		reopened := copyOf(t, b.dir)
		b.dir = reopened
		b.open(t, nil)
		if seen := see(t, b.dir); !equal(seen, before) && !equal(seen, after) {
			t.Errorf("killed at step %d: %v", last, seen)
		}
		b.apply(t, inline("v3", after))
		b.check(t, after)
		b.Close()
	}
}

func equal(a, b map[string]string) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// copyOf copies a folder with its links: the first one is locked by an updater that was never closed.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := memoryDir(t)
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// An archive of a few bytes that names thousands of folders is refused before it has made them.
func TestFoldersOfAnArchiveCountAgainstTheLimit(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("d/", 150)
	tests := map[string][]tarEntry{
		"deep folders":             {tarFile(deep+"a", "x"), tarFile("e/"+deep+"a", "x")},
		"folders of one file each": nil,
	}
	for i := range 150 {
		tests["folders of one file each"] = append(tests["folders of one file each"], tarFile(fmt.Sprintf("f%d/a", i), "x"))
	}
	for name, entries := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil, func(c *hotupdate.Config) { c.Limits.MaxFiles = 200 })
			_, err := b.Apply(t.Context(), archived(hotupdate.TarGz, tarGz(t, entries...), ""))
			if !errors.Is(err, hotupdate.ErrTooLarge) {
				t.Errorf("err = %v, want too large", err)
			}
			b.checkClean(t)
		})
	}
}

// The limit of bytes is for all files of an update together, archives or not, with those that are kept.
func TestUnpackedBytesAreLimitedInTotal(t *testing.T) {
	t.Parallel()
	half := strings.Repeat("x", 600<<10)
	limited := func(c *hotupdate.Config) { c.Limits.MaxUnpacked = 1 << 20 }
	b := newBench(t, nil, limited)
	if _, err := b.Apply(t.Context(), archived(hotupdate.TarGz, tarGz(t, tarFile("a", half), tarFile("b", half)), "")); !errors.Is(err, hotupdate.ErrTooLarge) {
		t.Errorf("one archive: %v", err)
	}
	if _, err := b.Apply(t.Context(), inline("v1", files{"a": half, "b": half})); !errors.Is(err, hotupdate.ErrTooLarge) {
		t.Errorf("two files: %v", err)
	}
	b.apply(t, inline("v1", files{"a": half}))
	kept := inline("v2", files{"b": half})
	kept.Keep = true
	if _, err := b.Apply(t.Context(), kept); !errors.Is(err, hotupdate.ErrTooLarge) {
		t.Errorf("with what is kept: %v", err)
	}
	b.check(t, files{"a": half})
}

// Revisions on disk take no more than their limit: the oldest go first, the current one never.
func TestDiskOfAllRevisionsIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, func(c *hotupdate.Config) { c.MaxTotal, c.Keep = 250<<10, 10 })
	for n := range 6 {
		b.apply(t, inline(fmt.Sprint("v", n), files{"a": strings.Repeat(fmt.Sprint(n), 100<<10)}))
	}
	all := b.Revisions()
	if len(all) != 2 || all[0].Version != "v5" || all[1].Version != "v4" {
		t.Errorf("%d revisions", len(all))
	}
	b.checkClean(t)
	b.apply(t, inline("big", files{"a": strings.Repeat("b", 400<<10)}))
	if all = b.Revisions(); len(all) != 1 || all[0].Version != "big" {
		t.Errorf("larger than the limit: %d revisions", len(all))
	}
}

// A file that is the same in each version is stored only once.
func TestCopiesOfOneFileCountForTheDiskOfAllRevisions(t *testing.T) {
	t.Parallel()
	const most = 250 << 10
	b := newBench(t, nil, func(c *hotupdate.Config) { c.MaxTotal, c.Keep = most, 10 })
	for n := range 6 {
		b.apply(t, inline(fmt.Sprint("v", n), files{"same": strings.Repeat("s", 100<<10), "version": fmt.Sprint(n)}))
	}
	inodes := map[uint64]int64{}
	err := filepath.WalkDir(b.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			inodes[info.Sys().(*syscall.Stat_t).Ino] = info.Size()
		}
		return err
	})
	total := int64(0)
	for _, size := range inodes {
		total += size
	}
	if manifests := int64(20 << 10); err != nil || total > most+manifests {
		t.Errorf("%d bytes on disk, want at most %d and the manifests; %v", total, most, err)
	}
}

// git archive begins with a global header that is no file.
func TestArchivesOfGitAreAccepted(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	header := tarEntry{header: tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "c0ffee"}}}
	b.apply(t, archived(hotupdate.TarGz, tarGz(t, header, tarFile("web/index.html", "hello")), ""))
	b.check(t, files{"web/index.html": "hello"})
}

// Files have the mode that the request says.
func TestModeOfAFile(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	request := hotupdate.Request{Version: "v1", Sources: []hotupdate.Source{
		{Name: "secret", Data: []byte("x"), Mode: 0o640}, {Name: "run", Data: []byte("x"), Mode: 0o755}, {Name: "plain", Data: []byte("x")},
	}}
	b.apply(t, request)
	for name, want := range map[string]os.FileMode{"secret": 0o640, "run": 0o755, "plain": 0o644} {
		if info, err := os.Stat(filepath.Join(b.dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
	request.Sources[0].Mode = 0o600
	if res := b.apply(t, request); !res.Changed {
		t.Error("another mode is no change")
	}
	if info, err := os.Stat(filepath.Join(b.dir, "secret")); err != nil || info.Mode() != 0o600 {
		t.Errorf("after the change: %v, %v", info.Mode(), err)
	}
	for _, bad := range []os.FileMode{0o4755, 0o044} {
		request.Sources[0].Mode = bad
		if _, err := b.Apply(t.Context(), request); !errors.Is(err, hotupdate.ErrInvalid) {
			t.Errorf("mode %o: %v", bad, err)
		}
	}
}

// The digest of the whole set is compared before anything changes.
func TestDigestOfTheSetIsChecked(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	res := b.apply(t, inline("v1", files{"a": "1", "b": "1"}))
	again := inline("v2", files{"a": "1", "b": "2"})
	again.Digest = res.Revision.Digest
	if _, err := b.Apply(t.Context(), again); !errors.Is(err, hotupdate.ErrDigest) {
		t.Errorf("err = %v, want digest", err)
	}
	b.check(t, files{"a": "1", "b": "1"})
}

// A dry run reports a check that fails.
func TestADryRunReportsAFailedCheck(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, func(c *hotupdate.Config) { c.Precheck = failing("no good") })
	request := inline("v1", files{"a": "1"})
	request.DryRun = true
	if _, err := b.Apply(t.Context(), request); !errors.Is(err, hotupdate.ErrPrecheck) || !strings.Contains(err.Error(), "no good") {
		t.Errorf("err = %v, want the check's", err)
	}
}
