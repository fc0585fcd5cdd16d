package hotupdate

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Limits bound what a request may write, all its sources together.
type Limits struct {
	// MaxFiles counts folders of archives too; 10,000 when zero.
	MaxFiles int
	// MaxUnpacked is in bytes; 1 GiB when zero.
	MaxUnpacked int64
}

func (l Limits) withDefaults() Limits {
	if l.MaxFiles == 0 {
		l.MaxFiles = 10_000
	}
	if l.MaxUnpacked == 0 {
		l.MaxUnpacked = 1 << 30
	}
	return l
}

// entry takes one file out of an archive.
type entry func(name string, executable bool, content io.Reader) error

// unpack hands every file in the archive to visit. Entries that are neither files nor folders are an error:
// leaving a link out would publish something else than was packed.
func unpack(ctx context.Context, format Format, archive *os.File, most int, visit entry) error {
	err := unpackFormat(ctx, format, archive, most, visit)
	for _, known := range []error{ErrArchive, ErrTooLarge, ErrInvalid, context.Canceled, context.DeadlineExceeded} {
		if err == nil || errors.Is(err, known) {
			return err
		}
	}
	var disk *fs.PathError
	if errors.As(err, &disk) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrArchive, err)
}

func unpackFormat(ctx context.Context, format Format, archive *os.File, most int, visit entry) error {
	if format == Zip {
		return unzip(ctx, archive, most, visit)
	}
	return untar(ctx, archive, most, visit)
}

func untar(ctx context.Context, archive io.Reader, most int, visit entry) error {
	z, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	t := tar.NewReader(z)
	for n := 0; ; n++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			// What follows the end mark still has to be a sound gzip stream, checksum included.
			_, err = io.CopyN(io.Discard, z, 1<<20)
			if errors.Is(err, io.EOF) {
				return nil
			}
			return errors.Join(err, errors.New("data after the end of the archive"))
		}
		if err != nil {
			return err
		}
		if err := admit(ctx, n, most, h.Name); err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir:
			continue
		case tar.TypeReg:
		default:
			return fmt.Errorf("%w: %q is neither file nor folder (type %q)", ErrArchive, h.Name, h.Typeflag)
		}
		if err := visit(inside(h.Name), h.Mode&0o111 != 0, t); err != nil {
			return err
		}
	}
}

func unzip(ctx context.Context, archive *os.File, most int, visit entry) error {
	info, err := archive.Stat()
	if err != nil {
		return err
	}
	// archive/zip keeps every entry of the directory in memory before it says how many there are. 512 bytes
	// are a header and a long name.
	source := &budgeted{from: archive, left: int64(most)*512 + 128<<10}
	z, err := zip.NewReader(source, info.Size())
	if err != nil {
		return err
	}
	source.left = -1
	for n, f := range z.File {
		if err := admit(ctx, n, most, f.Name); err != nil {
			return err
		}
		switch {
		case f.Mode().IsDir():
			continue
		case !f.Mode().IsRegular():
			return fmt.Errorf("%w: %q is neither file nor folder (%s)", ErrArchive, f.Name, f.Mode())
		}
		if err := visitZipped(f, visit); err != nil {
			return err
		}
	}
	return nil
}

func visitZipped(f *zip.File, visit entry) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	return visit(inside(f.Name), f.Mode()&0o111 != 0, r)
}

// budgeted bounds how much is read of a file while left is not negative.
type budgeted struct {
	from io.ReaderAt
	left int64
}

func (b *budgeted) ReadAt(p []byte, off int64) (int, error) {
	if b.left < 0 {
		return b.from.ReadAt(p, off)
	}
	if int64(len(p)) > b.left {
		return 0, fmt.Errorf("%w: too many entries", ErrTooLarge)
	}
	b.left -= int64(len(p))
	return b.from.ReadAt(p, off)
}

func admit(ctx context.Context, n, most int, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if n >= most {
		return fmt.Errorf("%w: more than %d entries", ErrTooLarge, most)
	}
	if name := inside(name); name != "" { // "./" is the folder itself
		if err := checkName(name); err != nil {
			return fmt.Errorf("%w: %w", ErrArchive, err)
		}
	}
	return nil
}

// inside drops what is harmless, a leading "./" and a folder's last slash, and leaves the rest to checkName.
func inside(name string) string {
	return strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
}
