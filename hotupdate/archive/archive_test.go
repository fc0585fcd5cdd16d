package archive

import (
	"archive/tar"
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
			err = Unpack(ctx, payload.TarGz, f, 10, func(_ string, _ bool, content io.Reader) error {
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
