package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/refit-project/refit/hotupdate/payload"
)

// Publish moves readers from one revision to another. from may be the zero Revision.
//
// New names are linked before the one rename that moves all files, and removed names are unlinked after it. A name with an
// existing file is linked after the rename too: the file has been adopted and has the same content as the link will have,
// but before the rename the link would lead nowhere. The same holds if a folder becomes a file or a file a folder: in
// between, the name leads to the old content or nowhere.
func (s *Store) Publish(from, to Revision) error {
	var later []string
	for _, f := range to.Files {
		taken, err := s.taken(f.Name)
		if err == nil && !taken {
			err = s.expose(f.Name)
		}
		if err != nil {
			return err
		}
		if taken {
			later = append(later, f.Name)
		}
	}
	s.Step("linked")
	if err := s.swap(to.ID); err != nil {
		return err
	}
	s.Step("swapped")
	have := to.Names()
	var errs []error
	for _, f := range from.Files {
		if !have[f.Name] {
			errs = append(errs, s.hide(f.Name))
		}
	}
	s.Step("unlinked")
	for _, name := range later {
		if err := s.makeWay(name); err != nil {
			return err
		}
		if err := s.expose(name); err != nil {
			return err
		}
	}
	return errors.Join(append(errs, s.sync("."))...)
}

// taken reports whether name exists, or is below one of our links. It returns an error if what is there must not be removed:
// a file of somebody else where name needs a folder, or a folder with such files.
func (s *Store) taken(name string) (bool, error) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if s.ours(dir) {
			return true, nil
		}
	}
	info, err := s.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%w: %s: %w", payload.ErrInvalid, name, err)
	case info.IsDir():
		return true, s.onlyOurs(name)
	}
	return true, nil
}

// CheckFolders returns an error if the link of a file would lead nowhere, because a folder in its name is itself a link, to a
// folder at another depth.
func (s *Store) CheckFolders(files []File) error {
	checked := map[string]bool{".": true}
	for _, f := range files {
		for dir := path.Dir(f.Name); !checked[dir]; dir = path.Dir(dir) {
			checked[dir] = true
			if info, err := s.root.Lstat(dir); err != nil || info.Mode()&fs.ModeSymlink == 0 || s.ours(dir) {
				continue
			}
			up := dir + strings.Repeat("/..", 1+strings.Count(dir, "/"))
			here, err := s.root.Stat(private)
			there, thereErr := s.root.Stat(up + "/" + private)
			if err := errors.Join(err, thereErr); err != nil || !os.SameFile(here, there) {
				return fmt.Errorf("%w: %s: %s is a link to a folder at another depth", payload.ErrInvalid, f.Name, dir)
			}
		}
	}
	return nil
}

// ours reports whether there is a link of ours at name.
func (s *Store) ours(name string) bool {
	target, err := s.root.Readlink(name)
	return err == nil && target == exposed(name)
}

// onlyOurs returns an error if a folder contains anything but our links.
func (s *Store) onlyOurs(dir string) error {
	return fs.WalkDir(s.root.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("%w: %s: %w", payload.ErrInvalid, dir, err)
		}
		if !d.IsDir() && !s.ours(name) {
			return fmt.Errorf("%w: %s is a folder with files that are not part of an update, such as %s", payload.ErrInvalid, dir, name)
		}
		return nil
	})
}

// makeWay removes our links at the parents of name, and a folder at name that contains only our links.
func (s *Store) makeWay(name string) error {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if err := s.hide(dir); err != nil {
			return err
		}
	}
	if info, err := s.root.Lstat(name); err != nil || !info.IsDir() {
		return nil //nolint:nilerr // nothing there, or a file, which the link replaces
	}
	var folders []string
	err := fs.WalkDir(s.root.FS(), name, func(inner string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			folders = append(folders, inner)
			return nil
		}
		return errors.Join(err, s.hide(inner))
	})
	for i := len(folders) - 1; i >= 0 && err == nil; i-- {
		err = s.root.Remove(folders[i]) // fails if it contains anything else
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", payload.ErrInvalid, name, err)
	}
	return nil
}

func (s *Store) swap(id string) error {
	target := FilesPath(id)
	if now, err := s.root.Readlink(dataLink); err == nil && now == target {
		return nil
	}
	if err := s.symlink(target, dataLink); err != nil {
		return err
	}
	return s.sync(".")
}

// Shows reports whether the link to the data leads to a revision.
func (s *Store) Shows(id string) bool {
	target, err := s.root.Readlink(dataLink)
	return err == nil && target == FilesPath(id)
}

// symlink creates or replaces a link atomically.
func (s *Store) symlink(target, name string) error {
	const beside = scratch + "/link"
	if err := s.root.RemoveAll(beside); err != nil {
		return err
	}
	if err := s.root.Symlink(target, beside); err != nil {
		return err
	}
	s.Step("link beside " + name)
	return s.root.Rename(beside, name)
}

// exposed returns the target of the link at name.
func exposed(name string) string {
	return strings.Repeat("../", strings.Count(name, "/")) + dataLink + "/" + name
}

// expose makes name a link to the data. It replaces a file or link at name.
func (s *Store) expose(name string) error {
	if s.ours(name) {
		return nil
	}
	if dir := path.Dir(name); dir != "." {
		if err := s.root.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("%w: %s: %w", payload.ErrInvalid, name, err)
		}
	}
	return s.symlink(exposed(name), name)
}

// hide removes name if it is still our link.
func (s *Store) hide(name string) error {
	if !s.ours(name) {
		return nil
	}
	if err := s.root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
