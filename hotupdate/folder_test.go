package hotupdate_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/test/kit/poll"
)

// Nothing outside of the folder is ever written, whatever the program puts into the folder.
func TestPlantedObstacles(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		plant func(dir, outside string) error
		want  files
		err   error
	}{
		"a link to a file outside": {
			plant: func(dir, outside string) error {
				return os.Symlink(filepath.Join(outside, "token"), filepath.Join(dir, "a"))
			},
			want: files{"a": "new", "sub/b": "new"},
		},
		"a link to a folder outside": {
			plant: func(dir, outside string) error { return os.Symlink(outside, filepath.Join(dir, "sub")) },
			err:   hotupdate.ErrInvalid,
		},
		"a hard link": {
			plant: func(dir, outside string) error {
				return os.Link(filepath.Join(outside, "token"), filepath.Join(dir, "a"))
			},
			want: files{"a": "new", "sub/b": "new"},
		},
		"a FIFO": {
			plant: func(dir, _ string) error { return syscall.Mkfifo(filepath.Join(dir, "a"), 0o666) },
			want:  files{"a": "new", "sub/b": "new"},
		},
		"an empty folder in place of a file": {
			plant: func(dir, _ string) error { return os.Mkdir(filepath.Join(dir, "a"), 0o755) },
			want:  files{"a": "new", "sub/b": "new"},
		},
		"a folder with a file in place of a file": {
			plant: func(dir, _ string) error {
				return errors.Join(os.Mkdir(filepath.Join(dir, "a"), 0o755), os.WriteFile(filepath.Join(dir, "a", "mine"), nil, 0o644))
			},
			err: hotupdate.ErrInvalid,
		},
		"a file in place of a folder": {
			plant: func(dir, _ string) error { return os.WriteFile(filepath.Join(dir, "sub"), nil, 0o644) },
			err:   hotupdate.ErrInvalid,
		},
		"a file of mode 000": {
			plant: func(dir, _ string) error { return os.WriteFile(filepath.Join(dir, "a"), []byte("x"), 0) },
			want:  files{"a": "new", "sub/b": "new"},
		},
		"the link beside": {
			plant: func(dir, outside string) error { return os.Symlink(outside, filepath.Join(dir, "..refit/tmp/link")) },
			want:  files{"a": "new", "sub/b": "new"},
		},
		"the stage": {
			plant: func(dir, outside string) error { return os.Symlink(outside, filepath.Join(dir, "..refit/tmp/stage-2")) },
		},
		"a folder for the data": {
			plant: func(dir, _ string) error {
				return errors.Join(os.Remove(filepath.Join(dir, "..data")), os.Mkdir(filepath.Join(dir, "..data"), 0o755))
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outside := memoryDir(t)
			if err := os.WriteFile(filepath.Join(outside, "token"), []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			b := newBench(t, nil, nil)
			if err := tt.plant(b.dir, outside); err != nil {
				t.Fatal(err)
			}
			_, err := b.Apply(t.Context(), inline("v1", files{"a": "new", "sub/b": "new"}))
			if tt.want != nil {
				if err != nil {
					t.Fatal(err)
				}
				b.check(t, tt.want)
			} else if err == nil || !errors.Is(err, tt.err) && tt.err != nil {
				t.Errorf("err = %v, want %v", err, tt.err)
			}
			kept, err := os.ReadFile(filepath.Join(outside, "token"))
			if entries, _ := os.ReadDir(outside); err != nil || string(kept) != "secret" || len(entries) != 1 {
				t.Errorf("outside: %q, %v, %v", kept, entries, err)
			}
		})
	}
}

// The rename race: a folder is replaced by a link while files are written below it. An update may fail by that, but with an
// error that says so; nothing is written outside, and the next update without the race repairs the folder.
func TestFolderSwappedForALinkDuringUpdates(t *testing.T) {
	t.Parallel()
	outside := memoryDir(t)                                       // of the same file system: a rename to another one fails by itself
	untouched := time.Now().Add(-time.Hour).Truncate(time.Second) // a name that is created or removed in the folder changes its time
	if err := os.Chtimes(outside, untouched, untouched); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, nil, nil)
	stop := make(chan struct{})
	var hostile sync.WaitGroup
	swaps := 0
	sub := filepath.Join(b.dir, "sub")
	hostile.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(sub, sub+"-away")
			if os.Symlink(outside, sub) == nil {
				swaps++
			}
			_ = os.Remove(sub)
			_ = os.RemoveAll(sub + "-away")
		}
	})
	failed := 0
	for n := range 200 {
		set := files{"sub/deep/b": "new", "sub/c": "new"}
		if n%2 == 1 {
			set = files{"sub/c": "newer"}
		}
		_, err := b.Apply(t.Context(), inline(fmt.Sprint("v", n), set))
		var failure *hotupdate.Failure
		switch {
		case err == nil:
		case errors.As(err, &failure) && failure.Phase == hotupdate.Writing:
			failed++
		default:
			t.Errorf("update %d: %v", n, err)
		}
		if info, err := os.Stat(outside); err != nil || !info.ModTime().Equal(untouched) {
			entries, _ := os.ReadDir(outside)
			t.Errorf("update %d wrote outside: %v, %v", n, entries, err)
			break
		}
	}
	close(stop)
	hostile.Wait()
	if swaps < 100 || failed == 0 {
		t.Errorf("%d swaps made %d of 200 updates fail: the race was not met", swaps, failed)
	}
	_ = os.RemoveAll(sub)
	b.apply(t, inline("last", files{"sub/c": "whole"}))
	b.check(t, files{"sub/c": "whole"})
}

// A full disk fails the update, keeps the files, and lets the next one succeed.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("needs a mount of its own: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	b := &bench{dir: dir}
	b.open(t, nil)
	b.apply(t, inline("v1", files{"a": "old"}))
	big := hotupdate.Request{Version: "v2", Sources: []hotupdate.Source{{Name: "a", Data: make([]byte, 2<<20)}}}
	if _, err := b.Apply(t.Context(), big); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("err = %v, want ENOSPC", err)
	}
	b.check(t, files{"a": "old"})
	b.checkClean(t)
	b.apply(t, inline("v3", files{"a": "new"}))
	b.check(t, files{"a": "new"})
	b.Close()
	// A program that another test is starting at this moment has inherited open files until it executes.
	poll.Until(t, "the file system is read-only", func() bool {
		err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
		if err != nil && !errors.Is(err, syscall.EBUSY) {
			t.Fatal(err)
		}
		return err == nil
	})
	if _, err := hotupdate.Open(t.Context(), hotupdate.Config{Dir: dir}); !errors.Is(err, syscall.EROFS) {
		t.Errorf("read-only: err = %v, want EROFS", err)
	}
}

// The program runs as another user and can read the files with any umask of the sidecar.
func TestOthersCanReadThrough(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	b.apply(t, inline("v1", files{"a": "x", "sub/b": "x"}))
	for _, name := range []string{"a", "sub/b"} {
		path, err := filepath.EvalSymlinks(filepath.Join(b.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		need := os.FileMode(0o004)
		for ; path != b.dir; path, need = filepath.Dir(path), 0o001 {
			if info, err := os.Stat(path); err != nil || info.Mode()&need == 0 {
				t.Errorf("%s: mode %v, %v", path, info.Mode(), err)
			}
		}
	}
	for _, name := range []string{"..refit/state.json", "..refit/lock"} {
		if info, err := os.Stat(filepath.Join(b.dir, name)); err != nil || info.Mode()&0o077 != 0 {
			t.Errorf("%s: mode %v, %v, want it private", name, info.Mode(), err)
		}
	}
}
