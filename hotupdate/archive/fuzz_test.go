package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/refit-project/refit/hotupdate/payload"
)

// For any bytes, names stay below the folder, entries are bounded, and nothing panics.
func FuzzUnpack(f *testing.F) {
	for _, name := range []string{"a", "b/c", "../a", "..data", "/x"} {
		f.Add(true, seedTar(f, name))
		f.Add(false, seedZip(f, name))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, isTar bool, data []byte) {
		format := payload.Zip
		if isTar {
			format = payload.TarGz
		}
		path := filepath.Join(dir, "archive")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		archive, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = archive.Close() }()
		const most = 20
		seen := 0
		_ = Unpack(t.Context(), format, archive, payload.Limits{MaxFiles: most, MaxUnpacked: 1 << 20}, func(name string, _ bool, content io.Reader) error {
			if seen++; seen > most {
				t.Errorf("entry %d", seen)
			}
			if err := payload.CheckName(name); name != "" && err != nil {
				t.Errorf("name %q: %v", name, err)
			}
			_, err := io.Copy(io.Discard, io.LimitReader(content, 1<<20))
			return err
		})
	})
}

func seedTar(f *testing.F, name string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1}); err != nil {
		f.Fatal(err)
	}
	_, _ = w.Write([]byte("x"))
	_, _ = w.Close(), z.Close()
	return b.Bytes()
}

func seedZip(f *testing.F, name string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	if _, err := w.Create(name); err != nil {
		f.Fatal(err)
	}
	_ = w.Close()
	return b.Bytes()
}
