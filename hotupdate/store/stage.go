package hotupdate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"
	"time"
)

// stage is a revision in the making, below scratch.
type stage struct {
	store  *store
	dir    string
	limits Limits
	files  []File
	sealed bool
}

func (s *store) stage(limits Limits) (*stage, error) {
	s.stages++
	g := &stage{store: s, dir: fmt.Sprintf("%s/stage-%d", scratch, s.stages), limits: limits}
	for _, dir := range []string{g.dir, g.dir + "/files"} {
		if err := g.folder(dir); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// folder makes one that the program may read.
func (g *stage) folder(dir string) error {
	if err := g.store.root.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return g.store.root.Chmod(dir, 0o755)
}

func (g *stage) folders(dir string) error {
	if dir == "." {
		return nil
	}
	if err := g.folders(path.Dir(dir)); err != nil {
		return err
	}
	if err := g.folder(g.dir + "/files/" + dir); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// put writes one file. A second one of the same name is refused, in whatever order archives bring them.
func (g *stage) put(name string, executable bool, content io.Reader) error {
	if err := checkName(name); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if len(g.files) >= g.limits.MaxFiles {
		return fmt.Errorf("%w: more than %d files", ErrTooLarge, g.limits.MaxFiles)
	}
	if err := g.folders(path.Dir(name)); err != nil {
		return collision(name, err)
	}
	mode := fs.FileMode(0o644)
	if executable {
		mode = 0o755
	}
	f, err := g.store.root.OpenFile(g.dir+"/files/"+name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return collision(name, err)
	}
	left := g.limits.MaxUnpacked - Revision{Files: g.files}.Size()
	sum := sha256.New()
	n, err := g.store.copy(f, &limited{from: content, left: left, limit: g.limits.MaxUnpacked}, sum)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	g.files = append(g.files, File{Name: name, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil)), Executable: executable})
	return nil
}

// archive is where one is kept until it is unpacked.
func (g *stage) archive() string { return g.dir + "/archive" }

// save writes an archive beside the files, to be unpacked when its digest is known.
func (g *stage) save(name string, content io.Reader, o *Origin) error {
	if err := g.store.root.RemoveAll(name); err != nil {
		return err
	}
	f, err := g.store.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = g.store.copy(f, content, sum)
	o.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return errors.Join(err, f.Close())
}

// collision tells names that exclude each other from faults of the disk.
func collision(name string, err error) error {
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w: %s: comes twice, or is a file and a folder", ErrInvalid, name)
	}
	return err
}

// drop removes what a put left that failed.
func (g *stage) drop(name string) error {
	err := g.store.root.Remove(g.dir + "/files/" + name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// keep takes over files of a revision by hard links, where the stage has none of the name.
func (g *stage) keep(r Revision) error {
	have := Revision{Files: g.files}.names()
	for _, f := range r.Files {
		if have[f.Name] {
			continue
		}
		if err := g.link(revisions+"/"+r.ID+"/files/"+f.Name, f); err != nil {
			return err
		}
	}
	return nil
}

func (g *stage) link(from string, f File) error {
	if err := g.folders(path.Dir(f.Name)); err != nil {
		return collision(f.Name, err)
	}
	if err := g.store.root.Link(from, g.dir+"/files/"+f.Name); err != nil {
		return collision(f.Name, err)
	}
	g.files = append(g.files, f)
	return nil
}

// seal makes the stage a revision, on disk under its own name when it returns.
func (g *stage) seal(version string, sources []Origin) (Revision, error) {
	r := g.preview(version, sources)
	b, err := json.Marshal(r)
	if err != nil {
		return Revision{}, err
	}
	if err := g.store.write(g.dir+"/manifest.json", b); err != nil {
		return Revision{}, err
	}
	if err := g.syncFolders(); err != nil {
		return Revision{}, err
	}
	if err := g.store.root.Rename(g.dir, revisions+"/"+r.ID); err != nil {
		return Revision{}, err
	}
	g.sealed = true
	g.store.next++
	return r, g.store.sync(revisions)
}

// preview is the revision that seal would make now.
func (g *stage) preview(version string, sources []Origin) Revision {
	sum := digest(g.files)
	return Revision{
		ID: fmt.Sprintf("%06d-%s", g.store.next, sum[:12]), Version: version,
		Created: time.Now().UTC().Truncate(time.Second), Digest: sum, Sources: sources, Files: g.files,
	}
}

func (g *stage) syncFolders() error {
	return fs.WalkDir(g.store.root.FS(), g.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return g.store.sync(name)
	})
}

// discard removes a stage that was not sealed.
func (g *stage) discard() error {
	if g.sealed {
		return nil
	}
	return g.store.root.RemoveAll(g.dir)
}

// check compares a revision's files with its manifest.
func (s *store) check(ctx context.Context, r Revision) error {
	for _, want := range r.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		sum, err := s.sum(revisions + "/" + r.ID + "/files/" + want.Name)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrTampered, err)
		}
		if sum.SHA256 != want.SHA256 {
			return fmt.Errorf("%w: %s: %s", ErrTampered, r.ID, want.Name)
		}
	}
	return nil
}

func (s *store) sum(name string) (File, error) {
	f, info, err := s.open(name)
	if err != nil {
		return File{}, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	n, err := s.copy(io.Discard, f, h)
	if err != nil {
		return File{}, err
	}
	return File{Size: n, SHA256: hex.EncodeToString(h.Sum(nil)), Executable: info.Mode()&0o111 != 0}, nil
}

// copy writes and hashes side by side: on a fast network the digest alone would cost half as much as the rest.
// The goroutine that hashes is gone when copy returns.
func (s *store) copy(to io.Writer, from io.Reader, sum hash.Hash) (n int64, err error) {
	full := make(chan []byte)
	var hashing sync.WaitGroup
	hashing.Go(func() {
		for b := range full {
			_, _ = sum.Write(b) // a hash.Hash never fails
			s.free <- b[:cap(b)]
		}
	})
	defer func() {
		close(full)
		hashing.Wait()
	}()
	for {
		b := <-s.free
		got, err := from.Read(b)
		if got > 0 {
			if _, err := to.Write(b[:got]); err != nil {
				s.free <- b
				return n, err
			}
		}
		n += int64(got)
		full <- b[:got]
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
