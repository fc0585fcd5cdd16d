package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/refit-project/refit/hotupdate/payload"
)

// The end of the context ends unpacking between entries and inside of one: a few bytes can unpack to gigabytes.
func TestUnpackingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range []string{"a", "b"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1 << 20}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "archive")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, inside := range map[string]bool{"between entries": false, "inside of one": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			ctx, cancel := context.WithCancel(t.Context())
			entries, read := 0, int64(0)
			err = Unpack(ctx, payload.TarGz, f, payload.Limits{MaxFiles: 10, MaxUnpacked: 3 << 20}, func(_ string, _ bool, content io.Reader) error {
				entries++
				if inside {
					cancel()
				}
				n, err := io.Copy(io.Discard, content)
				read += n
				cancel()
				return err
			})
			if !errors.Is(err, context.Canceled) || entries != 1 || inside && read > 0 {
				t.Errorf("err = %v after %d entries and %d bytes", err, entries, read)
			}
		})
	}
}

// An archive that exceeds a limit by its number of entries, or by the sizes that it announces, is refused before a file is
// written.
func TestLimitsOfArchivesAreNoticedBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	const files, size = 6, 100
	var tarred, zipped bytes.Buffer
	g := gzip.NewWriter(&tarred)
	w, z := tar.NewWriter(g), zip.NewWriter(&zipped)
	for i := range files {
		name := string(rune('a' + i))
		f, err := z.Create(name)
		if err := errors.Join(err, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: size})); err != nil {
			t.Fatal(err)
		}
		for _, to := range []io.Writer{f, w} {
			if _, err := to.Write(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), g.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		most payload.Limits
		want error
		got  int
	}{
		"all fit":         {payload.Limits{MaxFiles: files, MaxUnpacked: files * size}, nil, files},
		"one too many":    {payload.Limits{MaxFiles: files - 1, MaxUnpacked: files * size}, payload.ErrTooLarge, 0},
		"a byte too many": {payload.Limits{MaxFiles: files, MaxUnpacked: files*size - 1}, payload.ErrTooLarge, 0},
	} {
		for format, data := range map[payload.Format]*bytes.Buffer{payload.TarGz: &tarred, payload.Zip: &zipped} {
			path := filepath.Join(t.TempDir(), "archive")
			if err := os.WriteFile(path, data.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			err = Unpack(t.Context(), format, f, tt.most, func(string, bool, io.Reader) error { got++; return nil })
			if !errors.Is(err, tt.want) || got != tt.got {
				t.Errorf("%s, %s: %v after %d files, want %v and %d", name, format, err, got, tt.want, tt.got)
			}
			_ = f.Close()
		}
	}
}
