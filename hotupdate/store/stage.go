package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/refit-project/refit/hotupdate/manifest"
	"github.com/refit-project/refit/hotupdate/payload"
)

// Stage is a revision that is being built, below the folder for temporary files. It belongs to one goroutine.
type Stage struct {
	store  *Store
	dir    string
	limits payload.Limits
	files  []File
	// size is the sum of the files' sizes, and made counts the folders.
	size   int64
	made   int
	copies int    // files of another revision that were copied
	kept   bool   // some files come from another revision
	saved  string // beginning of the SHA-256 of the archive that was saved last
	from   string // the same of the archive that is being unpacked
}

// Stage creates an empty revision. The caller has to call Discard unless it is sealed.
func (s *Store) Stage(limits payload.Limits) (*Stage, error) {
	s.stages++
	g := &Stage{store: s, dir: fmt.Sprintf("%s/stage-%d", scratch, s.stages), limits: limits}
	for _, dir := range []string{g.dir, g.Path()} {
		if err := g.folder(dir); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// Path returns the folder with the staged files, relative to the store's folder.
func (g *Stage) Path() string { return g.dir + "/files" }

// folder creates a folder that the program may read.
func (g *Stage) folder(dir string) error {
	if err := g.store.root.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return g.store.root.Chmod(dir, 0o755)
}

// folders creates a folder and its parents. They count as files, because an archive of a few bytes can name thousands.
func (g *Stage) folders(dir string) error {
	if dir == "." {
		return nil
	}
	if err := g.folders(path.Dir(dir)); err != nil {
		return err
	}
	err := g.folder(g.Path() + "/" + dir)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	g.made++
	return g.count()
}

func (g *Stage) count() error {
	if len(g.files)+g.made > g.limits.MaxFiles {
		return fmt.Errorf("%w: more than %d files and folders", payload.ErrTooLarge, g.limits.MaxFiles)
	}
	return nil
}

// Put writes one file. A second file of the same name is refused, in any order of an archive. Mode 0 means 0644.
func (g *Stage) Put(name string, mode fs.FileMode, content io.Reader) (File, error) {
	written, err := g.put(name, mode, content)
	if err != nil {
		return File{}, err
	}
	return written, g.add(written)
}

func (g *Stage) put(name string, mode fs.FileMode, content io.Reader) (File, error) {
	if err := payload.CheckName(name); err != nil {
		return File{}, fmt.Errorf("%w: %w", payload.ErrInvalid, err)
	}
	if err := g.folders(path.Dir(name)); err != nil {
		return File{}, collision(name, err)
	}
	written := File{Name: name, Mode: mode, Archive: g.from}.Normalized()
	f, err := g.store.root.OpenFile(g.Path()+"/"+name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return File{}, collision(name, err)
	}
	sum := sha256.New()
	limited := payload.LimitReader(content, g.limits.MaxUnpacked-g.size, g.limits.MaxUnpacked)
	written.Size, err = g.store.copy(f, limited, sum)
	if err := errors.Join(err, f.Chmod(written.Perm()), f.Sync(), f.Close()); err != nil {
		return File{}, err
	}
	written.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return written, nil
}

func (g *Stage) add(f File) error {
	g.files = append(g.files, f)
	g.size += f.Size
	if g.size > g.limits.MaxUnpacked {
		return fmt.Errorf("%w: more than %d bytes", payload.ErrTooLarge, g.limits.MaxUnpacked)
	}
	return g.count()
}

func (g *Stage) archive() string { return g.dir + "/archive" }

// SaveArchive writes an archive beside the files and returns its SHA-256. It is unpacked when its digest has been checked.
func (g *Stage) SaveArchive(content io.Reader) (string, error) {
	if err := g.store.root.RemoveAll(g.archive()); err != nil {
		return "", err
	}
	f, err := g.store.root.OpenFile(g.archive(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = g.store.copy(f, content, sum)
	digest := hex.EncodeToString(sum.Sum(nil))
	g.saved = digest[:manifest.ArchiveDigits]
	return digest, errors.Join(err, f.Close())
}

// TakeArchive calls use with the saved archive, and then removes the archive.
func (g *Stage) TakeArchive(use func(*os.File) error) error {
	f, err := g.store.root.Open(g.archive())
	if err != nil {
		return err
	}
	g.from = g.saved
	defer func() { g.from = "" }()
	return errors.Join(use(f), f.Close(), g.store.root.Remove(g.archive()))
}

// collision returns ErrInvalid for names that exclude each other, and other errors of the disk unchanged.
func collision(name string, err error) error {
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w: %s: appears twice, or as a file and as a folder", payload.ErrInvalid, name)
	}
	return err
}

// Drop removes what a failed Put has left.
func (g *Stage) Drop(name string) error {
	err := g.store.root.Remove(g.Path() + "/" + name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Layer returns the names of the files staged so far.
func (g *Stage) Layer() manifest.Layer { return manifest.NewLayer(g.files) }

// Seal makes the stage a revision. It is on disk under its final name when Seal returns.
func (g *Stage) Seal(ctx context.Context, version string, sources []Origin, requested Requested) (Revision, error) {
	r := g.Preview(version, sources)
	r.Requested = requested
	b, err := json.Marshal(r)
	if err != nil {
		return Revision{}, err
	}
	if err := g.store.write(g.dir+"/manifest.json", b); err != nil {
		return Revision{}, err
	}
	if _, err := g.store.manifest(g.dir, r.ID); err != nil { // a manifest that cannot be read back could never be replaced
		return Revision{}, fmt.Errorf("read back: %w", err)
	}
	if err := g.syncFolders(ctx); err != nil {
		return Revision{}, err
	}
	if err := g.store.root.Rename(g.dir, revisions+"/"+r.ID); err != nil {
		return Revision{}, err
	}
	g.store.next++
	return r, g.store.sync(revisions)
}

// Preview returns the revision that Seal would create now, without Requested.
func (g *Stage) Preview(version string, sources []Origin) Revision {
	sum := manifest.Digest(g.files)
	return Revision{
		ID: fmt.Sprintf("%06d-%s", g.store.next, sum[:12]), Version: version,
		Created: time.Now().UTC().Truncate(time.Second), Digest: sum, Sources: sources, Files: g.files, Kept: g.kept,
	}
}

func (g *Stage) syncFolders(ctx context.Context) error {
	return fs.WalkDir(g.store.root.FS(), g.dir, func(name string, d fs.DirEntry, err error) error {
		if err := errors.Join(err, ctx.Err()); err != nil || !d.IsDir() {
			return err
		}
		return g.store.sync(name)
	})
}

// Discard removes a stage. It does nothing if the stage was sealed, because its folder has another name then.
func (g *Stage) Discard() error {
	return g.store.root.RemoveAll(g.dir)
}
