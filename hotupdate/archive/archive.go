// Package archive unpacks tar.gz and zip files without trusting them.
//
// It contains: the formats, and what an archive may contain. Where its files are written must stay out.
package archive

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

	"github.com/refit-project/refit/hotupdate/payload"
)

// ErrArchive means that the archive is damaged or has entries that are not allowed.
var ErrArchive = errors.New("archive")

// Visit receives one file of an archive.
type Visit func(name string, executable bool, content io.Reader) error

// Unpack calls visit for every file of the archive. Entries that are neither files nor folders are an error, because
// without a link the result would differ from what was packed. The limits on the number of entries and on the announced
// sizes are checked before anything is written.
func Unpack(ctx context.Context, format payload.Format, archive *os.File, most payload.Limits, visit Visit) error {
	err := unpackFormat(ctx, format, archive, most, visit)
	for _, known := range []error{ErrArchive, payload.ErrTooLarge, payload.ErrInvalid, context.Canceled, context.DeadlineExceeded} {
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

func unpackFormat(ctx context.Context, format payload.Format, archive *os.File, most payload.Limits, visit Visit) error {
	if format == payload.Zip {
		return unzip(ctx, archive, most, visit)
	}
	look := func(string, bool, io.Reader) error { return nil }
	if err := untar(ctx, archive, most, look); err != nil {
		return err
	}
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return untar(ctx, archive, most, visit)
}

func untar(ctx context.Context, archive io.Reader, most payload.Limits, visit Visit) error {
	size := int64(0)
	z, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	t := tar.NewReader(z)
	for n := 0; ; n++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			// What follows the end mark must be a valid gzip stream, including its checksum.
			_, err = io.CopyN(io.Discard, z, 1<<20)
			if errors.Is(err, io.EOF) {
				return nil
			}
			return errors.Join(err, errors.New("data after the end of the archive"))
		}
		if err != nil {
			return err
		}
		if err := admit(ctx, n, most.MaxFiles, h.Name, h.Typeflag == tar.TypeDir); err != nil {
			return err
		}
		if size, err = grown(size, h.Size, most.MaxUnpacked); err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir, tar.TypeXGlobalHeader: // git archive puts the commit into the latter
			continue
		case tar.TypeReg:
		default:
			return fmt.Errorf("%w: %q is neither file nor folder (type %q)", ErrArchive, h.Name, h.Typeflag)
		}
		if err := visit(inside(h.Name), h.Mode&0o111 != 0, &cancellable{ctx, t}); err != nil {
			return err
		}
	}
}

func unzip(ctx context.Context, archive *os.File, most payload.Limits, visit Visit) error {
	info, err := archive.Stat()
	if err != nil {
		return err
	}
	// archive/zip keeps the whole directory in memory before it returns the number of entries. 512 bytes are enough for a
	// header and a long name.
	source := &budgeted{from: archive, left: int64(most.MaxFiles)*512 + 128<<10}
	z, err := zip.NewReader(source, info.Size())
	if err != nil {
		return err
	}
	source.left = -1
	size := int64(0)
	for n, f := range z.File {
		if err := admit(ctx, n, most.MaxFiles, f.Name, f.Mode().IsDir()); err != nil {
			return err
		}
		if !f.Mode().IsDir() && !f.Mode().IsRegular() {
			return fmt.Errorf("%w: %q is neither file nor folder (%s)", ErrArchive, f.Name, f.Mode())
		}
		if size, err = grown(size, int64(min(f.UncompressedSize64, 1<<62)), most.MaxUnpacked); err != nil {
			return err
		}
	}
	for _, f := range z.File {
		if f.Mode().IsDir() {
			continue
		}
		if err := visitZipped(ctx, f, visit); err != nil {
			return err
		}
	}
	return nil
}

func visitZipped(ctx context.Context, f *zip.File, visit Visit) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	return visit(inside(f.Name), f.Mode()&0o111 != 0, &cancellable{ctx, r})
}

// cancellable stops reading when its context ends, because a few bytes can unpack to gigabytes.
type cancellable struct {
	ctx  context.Context //nolint:containedctx // a reader has no other way to get it
	from io.Reader
}

func (c *cancellable) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.from.Read(b)
}

// budgeted bounds how much is read from a file while left is not negative.
type budgeted struct {
	from io.ReaderAt
	left int64
}

func (b *budgeted) ReadAt(p []byte, off int64) (int, error) {
	if b.left < 0 {
		return b.from.ReadAt(p, off)
	}
	if int64(len(p)) > b.left {
		return 0, fmt.Errorf("%w: too many entries", payload.ErrTooLarge)
	}
	b.left -= int64(len(p))
	return b.from.ReadAt(p, off)
}

// grown returns the total size after a file of the announced size has been added, in bytes.
func grown(before, by, most int64) (int64, error) {
	if by > most-before {
		return 0, fmt.Errorf("%w: more than %d bytes unpacked", payload.ErrTooLarge, most)
	}
	return before + by, nil
}

func admit(ctx context.Context, n, most int, name string, folder bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if n >= most {
		return fmt.Errorf("%w: more than %d entries", payload.ErrTooLarge, most)
	}
	switch name := inside(name); {
	case folder && (name == "" || name == "."): // the folder itself
	case name == "" || name == ".":
		return fmt.Errorf("%w: a file is named %q", ErrArchive, name)
	default:
		if err := payload.CheckName(name); err != nil {
			return fmt.Errorf("%w: %w", ErrArchive, err)
		}
	}
	return nil
}

// inside removes a leading "./" and the last slash of a folder. Everything else is checked by payload.CheckName.
func inside(name string) string {
	return strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
}
