package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refit-project/refit/hotupdate/payload"
	"github.com/refit-project/refit/test/kit/watchdog"
)

// names are names of entries that attackers use.
var names = []string{"a", "a/b/c", "../a", "/etc/passwd", "a/../../b", "", ".", "a\x00b", "\xff", strings.Repeat("é", 1000), strings.Repeat("d/", 500) + "f", "a//b", `a\b`, "..data", "A"}

// entries are made of four bytes each: the name, the type, the size, and what the header says about the size.
func made(isTar bool, entries []byte) []byte {
	var b bytes.Buffer
	var z *gzip.Writer
	var w *tar.Writer
	var files *zip.Writer
	if isTar {
		z = gzip.NewWriter(&b)
		w = tar.NewWriter(z)
	} else {
		files = zip.NewWriter(&b)
	}
	for ; len(entries) >= 4 && b.Len() < 1<<20; entries = entries[4:] {
		name, content := names[int(entries[0])%len(names)], bytes.Repeat([]byte{entries[2]}, 1<<(entries[2]%22))
		if !isTar {
			if to, err := files.Create(name); err == nil {
				_, _ = to.Write(content)
			}
			continue
		}
		kind := []byte{tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeLink, tar.TypeChar, tar.TypeFifo, tar.TypeGNUSparse}[entries[1]%7]
		header := &tar.Header{Name: name, Typeflag: kind, Linkname: names[int(entries[1])%len(names)], Mode: int64(entries[3])}
		if kind == tar.TypeReg {
			header.Size = int64(len(content))
		}
		if w.WriteHeader(header) == nil && kind == tar.TypeReg {
			_, _ = w.Write(content[:len(content)-len(content)*int(entries[3]%2)/2]) // or less than the header says
		}
	}
	if isTar {
		_, _ = w.Close(), z.Close()
	} else {
		_ = files.Close()
	}
	return b.Bytes()
}

// FuzzEntries makes archives of entries and checks that what is unpacked is bounded and below the folder.
func FuzzEntries(f *testing.F) {
	for _, isTar := range []bool{true, false} {
		for name := range names {
			f.Add(isTar, []byte{byte(name), 0, 1, 0, byte(name), 2, 1, 0})
		}
		f.Add(isTar, bytes.Repeat([]byte{0, 0, 21, 0}, 16)) // 32 MiB of zeros, or nearly
		f.Add(isTar, bytes.Repeat([]byte{0, 1, 0, 1}, 200))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, isTar bool, entries []byte) {
		format := payload.Zip
		if isTar {
			format = payload.TarGz
		}
		path := filepath.Join(dir, "archive")
		if err := os.WriteFile(path, made(isTar, entries), 0o600); err != nil {
			t.Fatal(err)
		}
		archive, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = archive.Close() }()
		limits := payload.Limits{MaxFiles: 20, MaxUnpacked: 1 << 20}
		seen, unpacked := 0, int64(0)
		watchdog.Watch(t, func() {
			_ = Unpack(t.Context(), format, archive, limits, func(name string, _ bool, content io.Reader) error {
				if err := payload.CheckName(name); name != "" && err != nil {
					t.Errorf("name %q: %v", name, err)
				}
				n, err := io.Copy(io.Discard, content)
				seen, unpacked = seen+1, unpacked+n
				return err
			})
		})
		if seen > limits.MaxFiles || unpacked > limits.MaxUnpacked {
			t.Errorf("%d entries, %d bytes", seen, unpacked)
		}
	})
}
