package hotupdate_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/payload"
)

type tarEntry struct {
	header tar.Header
	text   string
}

func tarFile(name, text string) tarEntry {
	return tarEntry{tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644}, text}
}

func tarGz(tb testing.TB, entries ...tarEntry) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		e.header.Size = int64(len(e.text))
		if err := w.WriteHeader(&e.header); err != nil {
			tb.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			tb.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func zipped(tb testing.TB, add func(*zip.Writer) error) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	if err := errors.Join(add(w), w.Close()); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func zipOf(tb testing.TB, names ...string) []byte {
	tb.Helper()
	return zipped(tb, func(w *zip.Writer) error {
		for _, name := range names {
			f, err := w.Create(name)
			if err != nil {
				return err
			}
			if strings.HasSuffix(name, "/") {
				continue
			}
			if _, err := io.WriteString(f, "new"); err != nil {
				return err
			}
		}
		return nil
	})
}

func archived(format hotupdate.Format, data []byte, name string) hotupdate.Request {
	return hotupdate.Request{Version: "v1", Sources: []hotupdate.Source{{Data: data, Format: format, Name: name}}}
}

func TestArchives(t *testing.T) {
	t.Parallel()
	program := tarFile("bin/run", "#!")
	program.header.Mode = 0o4755
	tests := map[string]struct {
		format hotupdate.Format
		data   []byte
		below  string
		want   files
	}{
		"tar.gz": {hotupdate.TarGz, tarGz(t, tarEntry{header: tar.Header{Name: "./", Typeflag: tar.TypeDir}}, tarFile("./a", "1"),
			tarEntry{header: tar.Header{Name: "b/", Typeflag: tar.TypeDir}}, tarFile("b/c", "2"), program), "", files{"a": "1", "b/c": "2", "bin/run": "#!"}},
		"zip":            {hotupdate.Zip, zipOf(t, "b/", "a", "b/c"), "", files{"a": "new", "b/c": "new"}},
		"below a folder": {hotupdate.Zip, zipOf(t, "a", "b/c"), "web/root", files{"web/root/a": "new", "web/root/b/c": "new"}},
		"dots in names":  {hotupdate.Zip, zipOf(t, "a..b", "c/..d", ".hidden"), "", files{"a..b": "new", "c/..d": "new", ".hidden": "new"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil, nil)
			b.apply(t, archived(tt.format, tt.data, tt.below))
			b.check(t, tt.want)
			b.checkClean(t)
			if _, ok := tt.want["bin/run"]; ok {
				info, err := os.Stat(filepath.Join(b.dir, "bin/run"))
				if err != nil || info.Mode() != 0o755 {
					t.Errorf("mode %v, %v: want 0755, set-UID gone", info.Mode(), err)
				}
			}
		})
	}
}

// Traversal, links, devices and bombs: refused as a whole, nothing of it published.
func TestHostileArchives(t *testing.T) {
	t.Parallel()
	special := func(kind byte, link string) []byte {
		return tarGz(t, tarFile("good", "x"), tarEntry{header: tar.Header{Name: "evil", Typeflag: kind, Linkname: link}})
	}
	linkInZip := zipped(t, func(w *zip.Writer) error {
		h := &zip.FileHeader{Name: "evil"}
		h.SetMode(fs.ModeSymlink | 0o777)
		f, err := w.CreateHeader(h)
		if err != nil {
			return err
		}
		_, err = io.WriteString(f, "/etc/passwd")
		return err
	})
	many := make([]string, 300)
	for i := range many {
		many[i] = fmt.Sprintf("f%d", i)
	}
	folders := make([]tarEntry, 300)
	for i := range folders {
		folders[i] = tarEntry{header: tar.Header{Name: fmt.Sprintf("d%d/", i), Typeflag: tar.TypeDir}}
	}
	zeros := strings.Repeat("\x00", 2<<20)
	zeroZip := zipped(t, func(w *zip.Writer) error {
		f, err := w.Create("bomb")
		if err != nil {
			return err
		}
		_, err = io.WriteString(f, zeros)
		return err
	})
	sound := tarGz(t, tarFile("a", "1"))
	flipped := bytes.Clone(sound)
	flipped[len(flipped)-6] ^= 1 // in the checksum
	tests := map[string]struct {
		format hotupdate.Format
		data   []byte
		want   error
	}{
		"tar: ..":                   {hotupdate.TarGz, tarGz(t, tarFile("../evil", "x")), hotupdate.ErrArchive},
		"tar: .. in the middle":     {hotupdate.TarGz, tarGz(t, tarFile("a/../../evil", "x")), hotupdate.ErrArchive},
		"tar: absolute":             {hotupdate.TarGz, tarGz(t, tarFile("/etc/evil", "x")), hotupdate.ErrArchive},
		"tar: our own folder":       {hotupdate.TarGz, tarGz(t, tarFile("..refit/state.json", "x")), hotupdate.ErrArchive},
		"tar: our own folder, ./":   {hotupdate.TarGz, tarGz(t, tarFile("./..data", "x")), hotupdate.ErrArchive},
		"tar: control characters":   {hotupdate.TarGz, tarGz(t, tarFile("a\x1b[2J", "x")), hotupdate.ErrArchive},
		"tar: symbolic link":        {hotupdate.TarGz, special(tar.TypeSymlink, "/etc/passwd"), hotupdate.ErrArchive},
		"tar: hard link":            {hotupdate.TarGz, special(tar.TypeLink, "good"), hotupdate.ErrArchive},
		"tar: device":               {hotupdate.TarGz, special(tar.TypeChar, ""), hotupdate.ErrArchive},
		"tar: FIFO":                 {hotupdate.TarGz, special(tar.TypeFifo, ""), hotupdate.ErrArchive},
		"tar: the same twice":       {hotupdate.TarGz, tarGz(t, tarFile("a", "1"), tarFile("a", "2")), hotupdate.ErrArchive},
		"tar: file, then folder":    {hotupdate.TarGz, tarGz(t, tarFile("a", "1"), tarFile("a/b", "2")), hotupdate.ErrArchive},
		"tar: folder, then file":    {hotupdate.TarGz, tarGz(t, tarFile("a/b", "1"), tarFile("a", "2")), hotupdate.ErrArchive},
		"tar: bomb":                 {hotupdate.TarGz, tarGz(t, tarFile("bomb", zeros)), hotupdate.ErrTooLarge},
		"tar: many folders":         {hotupdate.TarGz, tarGz(t, folders...), hotupdate.ErrTooLarge},
		"tar: . is a file":          {hotupdate.TarGz, tarGz(t, tarFile("good", "x"), tarFile(".", "x")), hotupdate.ErrArchive},
		"tar: not gzip":             {hotupdate.TarGz, []byte("hello"), hotupdate.ErrArchive},
		"tar: cut off":              {hotupdate.TarGz, sound[:len(sound)-20], hotupdate.ErrArchive},
		"tar: checksum":             {hotupdate.TarGz, flipped, hotupdate.ErrArchive},
		"tar: something after it":   {hotupdate.TarGz, append(bytes.Clone(sound), "more"...), hotupdate.ErrArchive},
		"tar: empty":                {hotupdate.TarGz, nil, hotupdate.ErrArchive},
		"zip: ..":                   {hotupdate.Zip, zipOf(t, "../evil"), hotupdate.ErrArchive},
		"zip: absolute":             {hotupdate.Zip, zipOf(t, "/etc/evil"), hotupdate.ErrArchive},
		"zip: backslashes":          {hotupdate.Zip, zipOf(t, `..\evil`), hotupdate.ErrArchive},
		"zip: symbolic link":        {hotupdate.Zip, linkInZip, hotupdate.ErrArchive},
		"zip: the same twice":       {hotupdate.Zip, zipOf(t, "a", "a"), hotupdate.ErrArchive},
		"zip: bomb":                 {hotupdate.Zip, zeroZip, hotupdate.ErrTooLarge},
		"zip: many entries":         {hotupdate.Zip, zipOf(t, many...), hotupdate.ErrTooLarge},
		"zip: not zip":              {hotupdate.Zip, []byte("hello"), hotupdate.ErrArchive},
		"name below leads outside":  {hotupdate.Zip, zipOf(t, "a/.."), hotupdate.ErrArchive},
		"zip: folder and file same": {hotupdate.Zip, zipOf(t, "a/b", "a"), hotupdate.ErrArchive},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, files{"mine": "x"}, func(c *hotupdate.Config) {
				c.Limits = payload.Limits{MaxFiles: 200, MaxUnpacked: 1 << 20}
			})
			if _, err := b.Apply(t.Context(), archived(tt.format, tt.data, "")); !errors.Is(err, tt.want) {
				t.Errorf("err = %v, want %v", err, tt.want)
			}
			b.check(t, files{"mine": "x"})
			b.checkClean(t)
		})
	}
}

// The directory of a zip file is not read into memory before its entries are counted. Not parallel, because it measures
// memory.
func TestZipDirectoryIsBounded(t *testing.T) { //nolint:paralleltest // allocations of others would count
	data := zipped(t, func(w *zip.Writer) error {
		for i := range 30_000 {
			h := &zip.FileHeader{Name: fmt.Sprintf("some/folder/with/a/name/of/moderate/length/%d", i), Method: zip.Store}
			if _, err := w.CreateHeader(h); err != nil {
				return err
			}
		}
		return nil
	})
	b := newBench(t, nil, func(c *hotupdate.Config) { c.Limits.MaxFiles = 1000 })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := b.Apply(t.Context(), archived(hotupdate.Zip, data, ""))
	runtime.ReadMemStats(&after)
	if !errors.Is(err, hotupdate.ErrTooLarge) {
		t.Errorf("err = %v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 5<<20 {
		t.Errorf("allocated %d KiB for a directory with a limit of 1000 entries", took>>10)
	}
}
