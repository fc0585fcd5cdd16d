package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hotupdate/manifest"
	"github.com/refit-project/refit/hotupdate/payload"
	"github.com/refit-project/refit/hotupdate/store"
)

func open(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(dir, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// seal creates a revision of these files, content by name, without publishing it.
func seal(t *testing.T, s *store.Store, files map[string]string, keep ...store.Revision) store.Revision {
	t.Helper()
	g, err := s.Stage(payload.Limits{}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if _, err := g.Put(name, 0, strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
	for _, before := range keep {
		if _, _, err := g.Keep(before, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	r, err := g.Seal(t.Context(), "v1", nil, store.Requested{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// visible returns what a program reads in the folder, content by name.
func visible(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(entry.Name(), "..") && path != dir:
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestPublishedRevisionReplacesTheFilesOfTheOneBefore(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ before, after map[string]string }{
		"other content":         {map[string]string{"a": "1", "b": "1"}, map[string]string{"a": "2", "b": "2"}},
		"a file more":           {map[string]string{"a": "1"}, map[string]string{"a": "1", "dir/b": "2"}},
		"a file less":           {map[string]string{"a": "1", "dir/b": "1"}, map[string]string{"a": "1"}},
		"folder becomes a file": {map[string]string{"a/b/c": "1"}, map[string]string{"a": "2"}},
		"file becomes a folder": {map[string]string{"a": "1"}, map[string]string{"a/b/c": "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir)
			first, second := seal(t, s, test.before), seal(t, s, test.after)
			for _, step := range []struct {
				from, to store.Revision
				want     map[string]string
			}{{store.Revision{}, first, test.before}, {first, second, test.after}, {second, first, test.before}} {
				if err := s.Publish(step.from, step.to); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(step.want, visible(t, dir)); diff != "" {
					t.Errorf("revision %s (-want +got):\n%s", step.to.ID, diff)
				}
				if now, err := s.Visible(); err != nil || now.ID != step.to.ID {
					t.Errorf("visible is %s, %v; want %s", now.ID, err, step.to.ID)
				}
			}
		})
	}
}

// Files that are not part of an update belong to the application.
func TestFilesOfOthersAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "own"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := seal(t, s, map[string]string{"data/conf": "1"})
	if err := s.Publish(store.Revision{}, first); err != nil {
		t.Fatal(err)
	}
	blocked := seal(t, s, map[string]string{"data": "2"})
	if err := s.Publish(first, blocked); !errors.Is(err, payload.ErrInvalid) || !strings.Contains(err.Error(), "data/own") {
		t.Errorf("%v: want the name of the file that is in the way", err)
	}
	if diff := cmp.Diff(map[string]string{"data/own": "x", "data/conf": "1"}, visible(t, dir)); diff != "" {
		t.Errorf("after an update that was refused (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(filepath.Join(dir, "plain"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	below := seal(t, s, map[string]string{"plain/conf": "2"})
	if err := s.Publish(first, below); !errors.Is(err, payload.ErrInvalid) || !strings.Contains(err.Error(), "plain/conf") {
		t.Errorf("%v: want the name for which a file is in the way", err)
	}
	if diff := cmp.Diff(map[string]string{"data/own": "x", "data/conf": "1", "plain": "x"}, visible(t, dir)); diff != "" {
		t.Errorf("after another that was refused (-want +got):\n%s", diff)
	}
	if got := s.Foreign([]store.File{{Name: "data/own"}, {Name: "data/conf"}, {Name: "absent"}}, nil); !slices.Equal(got, []string{"data/own"}) {
		t.Errorf("files of others: %q", got)
	}
}

// The application may write while a folder is replaced by a file: what it has written is not removed.
func TestFileThatComesWhileAFolderMakesWayIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	first, second := seal(t, s, map[string]string{"a/b": "1"}), seal(t, s, map[string]string{"a": "2"})
	if err := s.Publish(store.Revision{}, first); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "a", "own")
	s.Step = func(step string) {
		if step == "swapped" {
			if err := os.WriteFile(own, []byte("x"), 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	if err := s.Publish(first, second); !errors.Is(err, payload.ErrInvalid) {
		t.Errorf("%v: want to know that the folder is in the way", err)
	}
	if content, err := os.ReadFile(own); err != nil || string(content) != "x" {
		t.Errorf("%q, %v", content, err)
	}
}

// A rollback restores files of the application that the first update has replaced.
func TestRollbackRestoresAdoptedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	script := filepath.Join(dir, "run.sh")
	if err := os.WriteFile(script, []byte("before"), 0o755); err != nil {
		t.Fatal(err)
	}
	adopted, err := s.Adopt(t.Context(), store.Revision{}, []string{"run.sh"}, payload.Limits{}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	if adopted.Version != manifest.InitialVersion || len(adopted.Files) != 1 || !adopted.Files[0].Executable {
		t.Errorf("adopted %+v", adopted)
	}
	next := seal(t, s, map[string]string{"run.sh": "after"})
	for _, step := range []struct {
		from, to store.Revision
		want     string
	}{{adopted, next, "after"}, {next, adopted, "before"}} {
		if err := s.Publish(step.from, step.to); err != nil {
			t.Fatal(err)
		}
		if got := visible(t, dir)["run.sh"]; got != step.want {
			t.Errorf("run.sh is %q, want %q", got, step.want)
		}
	}
	version := store.Revision{ID: next.ID, Version: "v7", Files: next.Files}
	if err := s.Publish(adopted, next); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "own"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	both, err := s.Adopt(t.Context(), version, []string{"own"}, payload.Limits{}.WithDefaults())
	var names []string
	for _, f := range both.Files {
		names = append(names, f.Name)
	}
	if err != nil || both.Version != "v7" || !slices.Equal(names, []string{"own", "run.sh"}) || both.Size() != 6 {
		t.Errorf("%+v, %v: want the files of the version and the one that was adopted", both, err)
	}
	if err := s.Publish(next, adopted); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(script); err != nil || info.Mode().Perm()&0o111 == 0 {
		t.Errorf("%v, %v: not executable any more", info, err)
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	if got, damaged, err := s.Load(); damaged || err != nil || got.Current != "" {
		t.Errorf("an empty folder: %+v, %t, %v", got, damaged, err)
	}
	id := seal(t, s, map[string]string{"a": "1"}).ID
	want := store.State{Current: id, Accepted: []string{id}, Delivered: map[string]store.Delivery{"configMap site": {Digest: "d", Files: map[string]string{"a": "s"}}}}
	if err := s.Save(want); err != nil {
		t.Fatal(err)
	}
	if got, damaged, err := s.Load(); damaged || err != nil || !cmp.Equal(got, want) {
		t.Errorf("%+v, %t, %v; want %+v", got, damaged, err, want)
	}
	file := filepath.Join(dir, "..refit", "state.json")
	for _, text := range []string{"", "{", `{"current":"` + id + `","accepted":[]}`, `{"current":"x","accepted":["x"]}`, `{"current":"` + id + `","pending":"../x","accepted":["` + id + `"]}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, damaged, err := s.Load(); !damaged || err != nil || got.Current != "" {
			t.Errorf("%q: %+v, %t, %v; want to know that it is damaged", text, got, damaged, err)
		}
	}
	if err := errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Load(); err == nil {
		t.Error("a FIFO was read")
	}
}

// A kill may happen after every step: a program then reads one complete revision.
func TestEveryStepLeavesOneRevision(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before, after := map[string]string{"a": "1", "b": "1"}, map[string]string{"a": "2", "b": "2"}
	s := open(t, dir)
	first, second := seal(t, s, before), seal(t, s, after)
	if err := s.Publish(store.Revision{}, first); err != nil {
		t.Fatal(err)
	}
	var steps []string
	s.Step = func(step string) {
		steps = append(steps, step)
		if now := visible(t, dir); !cmp.Equal(now, before) && !cmp.Equal(now, after) {
			t.Errorf("after %s: %v", step, now)
		}
	}
	if err := s.Publish(first, second); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(store.State{Current: second.ID, Accepted: []string{second.ID}}); err != nil {
		t.Fatal(err)
	}
	want := []string{"linked", "link beside ..data", "swapped", "unlinked", "beside ..refit/state.json", "replaced ..refit/state.json"}
	if !slices.Equal(steps, want) {
		t.Errorf("steps %q, want %q", steps, want)
	}
}
