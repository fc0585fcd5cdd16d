package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"

	"github.com/refit-project/refit/hotupdate/payload"
)

// The buffers of a copy: one for each half, and one between them.
const (
	buffers    = 3
	bufferSize = 128 << 10
)

// Check compares a revision's files with its manifest. The error is ErrTampered.
func (s *Store) Check(ctx context.Context, r Revision) error {
	for _, want := range r.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		sum, err := s.sum(FilesPath(r.ID)+"/"+want.Name, want.Size)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrTampered, err)
		}
		if sum.SHA256 != want.SHA256 {
			return fmt.Errorf("%w: %s: %s", ErrTampered, r.ID, want.Name)
		}
	}
	return nil
}

// sum returns the description of a file on disk. It reads at most most bytes, because the program can make a file of any size.
func (s *Store) sum(name string, most int64) (File, error) {
	f, info, err := s.open(name)
	if err != nil {
		return File{}, err
	}
	defer func() { _ = f.Close() }()
	if info.Size() > most {
		return File{}, fmt.Errorf("%w: %s: more than %d bytes", payload.ErrTooLarge, name, most)
	}
	h := sha256.New()
	n, err := s.copy(io.Discard, payload.LimitReader(f, most, most), h)
	if err != nil {
		return File{}, err
	}
	found := File{Size: n, SHA256: hex.EncodeToString(h.Sum(nil)), Mode: 0o644}
	if info.Mode()&0o111 != 0 {
		found.Mode = 0o755
	}
	return found.Normalized(), nil
}

// copy writes and hashes concurrently: on a fast network the digest alone would cost half as much as the rest. The
// goroutine that hashes has ended when copy returns.
func (s *Store) copy(to io.Writer, from io.Reader, sum hash.Hash) (n int64, err error) {
	full := make(chan []byte)
	var hashing sync.WaitGroup
	hashing.Go(func() {
		for b := range full {
			_, _ = sum.Write(b) // a hash.Hash never fails
			s.free <- b[:cap(b)]
		}
	})
	var b []byte // the buffer that this half has
	defer func() {
		if b != nil { // also after a panic of from, or three of them would stop all later copies
			s.free <- b
		}
		close(full)
		hashing.Wait()
	}()
	for {
		b = <-s.free
		got, err := from.Read(b)
		if got > 0 {
			if _, err := to.Write(b[:got]); err != nil {
				return n, err
			}
		}
		n += int64(got)
		full <- b[:got]
		b = nil
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
