// Package store keeps revisions of a folder's files on disk and switches readers from one to another atomically.
//
// It contains: staging, manifests, hard links between revisions, the atomic swap, and the state. When a revision is
// accepted or rolled back must stay out.
package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"syscall"

	"github.com/refit-project/refit/hotupdate/manifest"
	"github.com/refit-project/refit/hotupdate/payload"
)

// The layout, see doc.go of package hotupdate.
const (
	private      = "..refit"
	revisions    = private + "/revisions"
	scratch      = private + "/tmp"
	stateFile    = private + "/state.json"
	recordedFile = private + "/recorded"
	lockFile     = private + "/lock"
	dataLink     = "..data"
)

// Limits on reading files that the program may have replaced, in bytes. A manifest has 200 bytes for a file with a short
// name, and is read back when it is written.
const (
	maxManifest = 8 << 20
	maxState    = 2 << 20
	maxRecorded = 64
)

var validID = regexp.MustCompile(`^[0-9]{6,}-[0-9a-f]{12}$`)

// FilesPath returns the folder with a revision's files, relative to the store's folder.
func FilesPath(id string) string { return revisions + "/" + id + "/files" }

// Store is the folder with its revisions. Its methods are for one goroutine, except Revision.
type Store struct {
	root *os.Root
	lock *os.File
	// next numbers the revisions, and stages the temporary folders.
	next, stages int
	// free has the buffers that no copy uses; they circulate between the two halves of a copy.
	free chan []byte
	// Step is called with the name of each step after which a kill could happen. Tests end the process there.
	Step func(string)
}

// Open prepares dir and locks it against a second program. step is called with the name of each step after which a kill
// could happen.
func Open(dir string, step func(string)) (*Store, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{root: root, next: 1, free: make(chan []byte, buffers), Step: step}
	for range buffers {
		s.free <- make([]byte, bufferSize)
	}
	if err := s.prepare(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) prepare() error {
	// The program reads through these folders as another user, but need not list them.
	for name, mode := range map[string]fs.FileMode{private: 0o711, revisions: 0o711, scratch: 0o711} {
		if err := s.root.MkdirAll(name, mode); err != nil {
			return err
		}
		if err := s.root.Chmod(name, mode); err != nil { // independent of the umask
			return err
		}
	}
	var err error
	if s.lock, err = s.root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if err := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%s is in use by another program: %w", lockFile, err)
	}
	ids, err := s.IDs()
	if err != nil {
		return err
	}
	if len(ids) > 0 {
		s.next = number(ids[len(ids)-1]) + 1
	}
	return s.empty(scratch)
}

// Close unlocks the folder.
func (s *Store) Close() {
	if s.lock != nil {
		// Closing alone does not unlock the file while a process that is being started still has a copy (flock(2)).
		_ = syscall.Flock(int(s.lock.Fd()), syscall.LOCK_UN)
		_ = s.lock.Close()
	}
	_ = s.root.Close()
}

// CheckFolder returns an error if somebody has deleted folders or files of this program, or the files of a revision. It may be
// called by any goroutine. It does not compare inodes: some file systems have no stable ones.
func (s *Store) CheckFolder(id string) error {
	for _, folder := range []string{private, revisions, scratch, FilesPath(id)} {
		if info, err := s.root.Lstat(folder); err != nil || !info.IsDir() {
			return fmt.Errorf("folder %s is missing", folder)
		}
	}
	if info, err := s.root.Lstat(lockFile); err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("file %s is missing", lockFile)
	}
	return nil
}

// IDs returns the IDs of all revisions on disk, oldest first.
func (s *Store) IDs() ([]string, error) {
	entries, err := fs.ReadDir(s.root.FS(), revisions)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if validID.MatchString(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return number(a) - number(b) })
	return ids, nil
}

func number(id string) int {
	n, _ := strconv.Atoi(id[:max(0, len(id)-13)]) // validID requires a dash and twelve digits at the end
	return n
}

func (s *Store) empty(dir string) error {
	entries, err := fs.ReadDir(s.root.FS(), dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := s.root.RemoveAll(dir + "/" + e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// open opens a regular file. Another process may have put something else at its name: a FIFO would block, and a link would
// lead to another file.
func (s *Store) open(name string) (*os.File, fs.FileInfo, error) {
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file", name)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// readOwn reads a file of this program with at most most bytes.
func (s *Store) readOwn(name string, most int64) ([]byte, error) {
	f, info, err := s.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var text bytes.Buffer
	text.Grow(int(min(info.Size(), most)) + bytes.MinRead) // avoids copies while it is read
	_, err = text.ReadFrom(payload.LimitReader(f, most, most))
	return text.Bytes(), err
}

// replace writes a temporary file and renames it to name.
func (s *Store) replace(name string, b []byte) error {
	beside := scratch + "/" + path.Base(name)
	if err := s.write(beside, b); err != nil {
		return err
	}
	s.Step("beside " + name)
	if err := s.root.Rename(beside, name); err != nil {
		return err
	}
	s.Step("replaced " + name)
	return s.sync(path.Dir(name))
}

// write creates a private file. It is on disk when write returns.
func (s *Store) write(name string, b []byte) error {
	if err := s.root.RemoveAll(name); err != nil {
		return err
	}
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// sync makes changes of the names in a folder durable.
func (s *Store) sync(dir string) error {
	f, err := s.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Revision reads a manifest. The error is ErrUnknownRevision if there is none, and ErrTampered if it was changed
// after it was written.
func (s *Store) Revision(id string) (Revision, error) {
	if !validID.MatchString(id) {
		return Revision{}, fmt.Errorf("%w: %q", ErrUnknownRevision, id)
	}
	r, err := s.manifest(revisions+"/"+id, id)
	if errors.Is(err, payload.ErrTooLarge) { // its size was checked when it was written
		err = fmt.Errorf("%w: %s: manifest: %w", ErrTampered, id, err)
	}
	return r, err
}

// manifest reads the manifest in the folder of a revision or of a stage.
func (s *Store) manifest(dir, id string) (Revision, error) {
	b, err := s.readOwn(dir+"/manifest.json", maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return Revision{}, fmt.Errorf("%w: %s", ErrUnknownRevision, id)
	}
	if err != nil {
		return Revision{}, err
	}
	r, err := manifest.Decode(b)
	if err != nil {
		return Revision{}, fmt.Errorf("%w: %s: manifest: %w", ErrTampered, id, err)
	}
	for _, f := range r.Files {
		if err := payload.CheckName(f.Name); err != nil {
			return Revision{}, fmt.Errorf("%w: %s: manifest: %w", ErrTampered, id, err)
		}
	}
	if r.ID != id || manifest.Digest(r.Files) != r.Digest {
		return Revision{}, fmt.Errorf("%w: %s: manifest", ErrTampered, id)
	}
	return r, nil
}

// Prune removes every revision that is not in keep.
func (s *Store) Prune(keep []string) error {
	ids, err := s.IDs()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !slices.Contains(keep, id) {
			if err := s.root.RemoveAll(revisions + "/" + id); err != nil {
				return err
			}
		}
	}
	return nil
}
