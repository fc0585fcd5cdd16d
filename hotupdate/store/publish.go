package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/refit-project/refit/hotupdate/payload"
)

// Publish moves readers from one revision to another. from may be the zero Revision.
//
// Names at which there is nothing are linked before the one rename that counts; names that are no more are unlinked
// after it. A name at which there is something is linked after it too: somebody else's file has been adopted and
// reads as the link will, but before the rename the link would lead nowhere. The same holds where a folder becomes a
// file or a file a folder: in between, the name reads as it did or not at all.
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
	var faults []error
	for _, f := range from.Files {
		if !have[f.Name] {
			faults = append(faults, s.hide(f.Name))
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
	return errors.Join(append(faults, s.sync("."))...)
}

// taken reports that there is something at name, or a link of ours where name needs a folder. What cannot make way
// is an error: somebody else's file where name needs a folder, or a folder with somebody else's files.
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

// ours reports that there is one of our links at name.
func (s *Store) ours(name string) bool {
	target, err := s.root.Readlink(name)
	return err == nil && target == exposed(name)
}

// onlyOurs is an error if a folder holds anything but our links.
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

// makeWay removes our links at the parents of name, and a folder at name that holds nothing but our links.
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
		err = s.root.Remove(folders[i]) // fails if it holds anything else
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

// symlink makes or replaces a link at once.
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

// exposed is what the link at name says.
func exposed(name string) string {
	return strings.Repeat("../", strings.Count(name, "/")) + dataLink + "/" + name
}

// expose makes name lead to the data. A file or link that is there makes way.
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

// hide removes name if it is our link still.
func (s *Store) hide(name string) error {
	if !s.ours(name) {
		return nil
	}
	if err := s.root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
