package hotupdate_test

import (
	"archive/zip"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hotupdate"
)

func (b *bench) current(t *testing.T) hotupdate.Revision {
	t.Helper()
	r, err := b.Current()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// of returns a file of a revision on disk.
func (b *bench) of(r hotupdate.Revision, name string) string {
	return filepath.Join(b.dir, "..refit/revisions", r.ID, name)
}

func versions(all []hotupdate.Revision) (of []string) {
	for _, r := range all {
		of = append(of, r.Version)
	}
	return of
}

// A name that is not UTF-8 cannot be written to a manifest unchanged. It is refused from every source, and the next update
// works.
func TestNamesThatAreNotUTF8AreRefused(t *testing.T) {
	t.Parallel()
	const latin1 = "caf\xe9"
	address := serve(t, text("x"))
	archive := zipped(t, func(w *zip.Writer) error {
		_, err := w.CreateHeader(&zip.FileHeader{Name: latin1, NonUTF8: true})
		return err
	})
	for name, tt := range map[string]struct {
		source hotupdate.Source
		want   error
	}{
		"given":               {hotupdate.Source{Name: latin1, Data: []byte("x")}, hotupdate.ErrInvalid},
		"given with a URL":    {hotupdate.Source{Name: latin1, URL: address}, hotupdate.ErrInvalid},
		"last part of a URL":  {hotupdate.Source{URL: address + "/caf%e9"}, hotupdate.ErrInvalid},
		"below an archive":    {hotupdate.Source{Name: latin1, Data: archive, Format: hotupdate.Zip}, hotupdate.ErrInvalid},
		"member of a tar.gz":  {hotupdate.Source{Data: tarGz(t, tarFile(latin1, "x")), Format: hotupdate.TarGz}, hotupdate.ErrArchive},
		"member of a zip":     {hotupdate.Source{Data: archive, Format: hotupdate.Zip}, hotupdate.ErrArchive},
		"255 bytes are valid": {hotupdate.Source{Name: strings.Repeat("x", 255), Data: []byte("x")}, nil},
		"256 are not":         {hotupdate.Source{Name: "a/" + strings.Repeat("x", 256), Data: []byte("x")}, hotupdate.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil, nil)
			_, err := b.Apply(t.Context(), hotupdate.Request{Version: "v1", Keep: true, Sources: []hotupdate.Source{tt.source}})
			if !errors.Is(err, tt.want) || err != nil && strings.Contains(err.Error(), "..refit") {
				t.Errorf("err = %v, want %v", err, tt.want)
			}
			b.apply(t, inline("v2", files{"a": "1"}))
			b.check(t, files{"a": "1"})
		})
	}
}

// The newest revision is damaged while the sidecar runs: an older one can still be rolled back to.
func TestADamagedRevisionHidesNoOlderOne(t *testing.T) {
	t.Parallel()
	damaged := func(t *testing.T) *bench {
		b := newBench(t, nil, nil)
		b.apply(t, inline("v1", files{"a": "1"}))
		b.apply(t, inline("v2", files{"a": "2", "b": "2"}))
		if err := os.WriteFile(b.of(b.current(t), "manifest.json"), []byte(`{"id":"`), 0o600); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"v1", "initial"}, versions(b.Revisions())); diff != "" {
			t.Errorf("revisions (-want +got):\n%s", diff)
		}
		return b
	}
	t.Run("rollback", func(t *testing.T) {
		t.Parallel()
		b := damaged(t)
		if res, err := b.Rollback(t.Context(), ""); err != nil || res.Revision.Version != "v1" {
			t.Fatalf("%+v, %v", res, err)
		}
		b.check(t, files{"a": "1"})
		b.checkLinks(t, "a")
	})
	t.Run("update", func(t *testing.T) {
		t.Parallel()
		b := damaged(t)
		keeping := inline("v3", files{"c": "3"})
		keeping.Keep = true
		if _, err := b.Apply(t.Context(), keeping); !errors.Is(err, hotupdate.ErrTampered) || !strings.Contains(err.Error(), "roll back") {
			t.Errorf("an update that keeps what is not known: %v", err)
		}
		b.check(t, files{"a": "2", "b": "2"})
		b.apply(t, inline("v3", files{"a": "3"}))
		b.check(t, files{"a": "3"})
		b.checkLinks(t, "a")
	})
	t.Run("restart", func(t *testing.T) {
		t.Parallel()
		b := damaged(t)
		b.Close()
		b.open(t, nil)
		b.check(t, files{"a": "1"})
		b.checkLinks(t, "a")
		if !b.Provisional() || !b.Interrupted() {
			t.Errorf("provisional %t, interrupted %t: want both", b.Provisional(), b.Interrupted())
		}
		if diff := cmp.Diff([]string{"v1", "initial"}, versions(b.Revisions())); diff != "" {
			t.Errorf("revisions (-want +got):\n%s", diff)
		}
		b.apply(t, inline("v3", files{"a": "3"}))
		if b.Provisional() {
			t.Error("an accepted update is provisional")
		}
	})
}

// checkLinks expects these names in the folder and no others except folders, including links that lead nowhere.
func (b *bench) checkLinks(t *testing.T, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if !e.IsDir() && e.Name() != "..data" {
			got = append(got, e.Name())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// A state that cannot be read is no reason to lose revisions.
func TestADamagedStateLosesNoRevision(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	b.apply(t, inline("v1", files{"a": "1"}))
	b.apply(t, inline("v2", files{"a": "2"}))
	b.Close()
	if err := os.WriteFile(filepath.Join(b.dir, "..refit/state.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.open(t, nil)
	b.check(t, files{"a": "2"})
	if diff := cmp.Diff([]string{"v2", "v1", "initial"}, versions(b.Revisions())); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
}

// A program that writes to one of its files, or puts a link in its place, changes only the revision in force. The next
// update has the accepted content.
func TestAProgramThatWritesInPlaceDamagesNoOtherRevision(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path string) error{
		"written": func(path string) error { return os.WriteFile(path, []byte("mine"), 0o600) },
		"a link": func(path string) error {
			return errors.Join(os.Remove(path), os.Symlink("/etc/hostname", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil, nil)
			keep := func(version, name string) {
				t.Helper()
				req := inline(version, files{name: version})
				req.Keep = true
				b.apply(t, req)
			}
			keep("v1", "g")
			keep("v2", "x")
			keep("v3", "x")
			if err := change(b.of(b.current(t), "files/g")); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Rollback(t.Context(), ""); err != nil {
				t.Errorf("rollback: %v", err)
			}
			b.check(t, files{"g": "v1", "x": "v2"})
			if err := change(b.of(b.current(t), "files/g")); err != nil {
				t.Fatal(err)
			}
			req := inline("v4", files{"x": "v4"})
			req.Keep = true
			if res := b.apply(t, req); !cmp.Equal(res.Mended, []string{"g"}) {
				t.Errorf("mended %q", res.Mended)
			}
			b.check(t, files{"g": "v1", "x": "v4"})
		})
	}
}

// The same update again puts back what the program has changed.
func TestTheSameUpdateAgainPutsFilesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	req := inline("v1", files{"a": "1"})
	for _, digest := range []string{"", sum("1")} {
		req.Sources[0].SHA256 = digest
		b.apply(t, req)
		if err := os.WriteFile(filepath.Join(b.dir, "a"), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if res := b.apply(t, req); !res.Changed {
			t.Error("nothing has changed")
		}
		b.check(t, files{"a": "1"})
	}
}

// A file that no revision on disk has is fetched again, or the update is refused with the name of the file.
func TestChangedFilesAreFetchedAgain(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("l", 2<<20)
	content := map[string][]byte{"/large": []byte(large), "/archive": tarGz(t, tarFile("in/one", "1"), tarFile("in/two", large+"2")), "/b": []byte("B")}
	address := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(content[r.URL.Path]) })
	b := newBench(t, nil, nil)
	fetch := func(version, path string, format hotupdate.Format) (hotupdate.Result, error) {
		return b.Apply(t.Context(), hotupdate.Request{Version: version, Keep: true, Sources: []hotupdate.Source{{URL: address + path, Format: format}}})
	}
	for _, step := range []struct {
		version, path string
		format        hotupdate.Format
	}{{"v1", "/large", ""}, {"v2", "/archive", hotupdate.TarGz}} {
		if _, err := fetch(step.version, step.path, step.format); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"large", "in/one", "in/two"} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	res, err := fetch("v3", "/b", "")
	if err != nil || len(res.Mended) != 3 {
		t.Fatalf("%q, %v", res.Mended, err)
	}
	b.check(t, files{"large": large, "in/one": "1", "in/two": large + "2", "b": "B"})
	if _, err := b.Rollback(t.Context(), ""); err != nil { // large was shared with v2
		t.Fatal(err)
	}
	b.check(t, files{"large": large, "in/one": "1", "in/two": large + "2"})
	if err := os.WriteFile(filepath.Join(b.dir, "large"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	content["/large"] = []byte("another")
	for _, r := range b.Revisions() { // of the same content
		if r.ID != b.current(t).ID {
			_ = os.WriteFile(b.of(r, "files/large"), []byte("mine"), 0o600)
		}
	}
	if _, err := fetch("v4", "/b", ""); !errors.Is(err, hotupdate.ErrTampered) || !strings.Contains(err.Error(), "large") {
		t.Errorf("what cannot be had any more: %v", err)
	}
	if _, err := fetch("v4", "/large", ""); err != nil {
		t.Errorf("sent with the update: %v", err)
	}
}
