package hotupdate

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"
)

// publish moves readers from one revision to another. from may be the zero Revision.
//
// Names at which there is nothing are linked before the one rename that counts, names that are no more are
// unlinked after it. A name at which there is somebody else's file is linked after it too: the file has been
// adopted and reads as the link will, but before the rename the link would lead nowhere.
func (s *store) publish(from, to Revision) error {
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
	s.step("linked")
	if err := s.swap(to.ID); err != nil {
		return err
	}
	s.step("swapped")
	for _, name := range later {
		if err := s.expose(name); err != nil {
			return err
		}
	}
	have := to.names()
	var faults []error
	for _, f := range from.Files {
		if !have[f.Name] {
			faults = append(faults, s.hide(f.Name))
		}
	}
	s.step("unlinked")
	return errors.Join(append(faults, s.sync("."))...)
}

// taken reports that there is something at name. What cannot make way is an error: a folder, or a file where
// name needs a folder.
func (s *store) taken(name string) (bool, error) {
	info, err := s.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%w: %s: %w", ErrInvalid, name, err)
	case info.IsDir():
		return false, fmt.Errorf("%w: %s is a folder", ErrInvalid, name)
	}
	return true, nil
}

func (s *store) swap(id string) error {
	target := revisions + "/" + id + "/files"
	if now, err := s.root.Readlink(dataLink); err == nil && now == target {
		return nil
	}
	if err := s.symlink(target, dataLink); err != nil {
		return err
	}
	return s.sync(".")
}

// symlink makes or replaces a link at once.
func (s *store) symlink(target, name string) error {
	const beside = scratch + "/link"
	if err := s.root.RemoveAll(beside); err != nil {
		return err
	}
	if err := s.root.Symlink(target, beside); err != nil {
		return err
	}
	s.step("link beside " + name)
	return s.root.Rename(beside, name)
}

// exposed is what the link at name says.
func exposed(name string) string {
	return strings.Repeat("../", strings.Count(name, "/")) + dataLink + "/" + name
}

// expose makes name lead to the data. Whatever file or link is there makes way.
func (s *store) expose(name string) error {
	if now, err := s.root.Readlink(name); err == nil && now == exposed(name) {
		return nil
	}
	if dir := path.Dir(name); dir != "." {
		if err := s.root.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrInvalid, name, err)
		}
	}
	return s.symlink(exposed(name), name)
}

// hide removes name if it is our link still.
func (s *store) hide(name string) error {
	now, err := s.root.Readlink(name)
	if err != nil || now != exposed(name) {
		return nil //nolint:nilerr // gone, or no longer ours
	}
	if err := s.root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// plain lists names at which there is a regular file of somebody else's.
func (s *store) plain(files []File) []string {
	var names []string
	for _, f := range files {
		if info, err := s.root.Lstat(f.Name); err == nil && info.Mode().IsRegular() {
			names = append(names, f.Name)
		}
	}
	return names
}

// adopt makes a revision of what readers see now: the current one and the plain files at names. To roll back
// means to go back to that.
func (s *store) adopt(current Revision, names []string, limits Limits) (Revision, error) {
	g, err := s.stage(limits)
	if err != nil {
		return Revision{}, err
	}
	defer func() { _ = g.discard() }()
	for _, name := range names {
		if err := g.take(name); err != nil {
			return Revision{}, err
		}
	}
	if err := g.keep(current); err != nil {
		return Revision{}, err
	}
	version := current.Version
	if version == "" {
		version = InitialVersion
	}
	return g.seal(version, current.Sources)
}

// take brings a plain file of the folder into the stage: the file itself, or a copy where the kernel forbids
// the link, as with fs.protected_hardlinks and a file of another user.
func (g *stage) take(name string) error {
	f, err := g.store.sum(name)
	if err != nil {
		return err
	}
	f.Name = name
	err = g.link(name, f)
	if !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.EXDEV) {
		return err
	}
	file, _, err := g.store.open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return g.put(name, f.Executable, file)
}
