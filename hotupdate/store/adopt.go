package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"github.com/refit-project/refit/hotupdate/manifest"
	"github.com/refit-project/refit/hotupdate/payload"
)

// Unlinked lists the files whose name in the folder is not a link to the files in force: somebody has replaced or removed it.
func (s *Store) Unlinked(files []File) []string {
	var names []string
	for _, f := range files {
		if !s.ours(f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// Foreign lists names at which there is a regular file that this program has not written, or a link to one at a name that is
// not known.
func (s *Store) Foreign(files []File, known map[string]bool) []string {
	var names []string
	for _, f := range files {
		info, err := s.root.Lstat(f.Name)
		switch {
		case err != nil:
		case info.Mode().IsRegular():
			names = append(names, f.Name)
		case info.Mode()&fs.ModeSymlink != 0 && !known[f.Name] && !s.ours(f.Name):
			if file, _, err := s.openLinked(f.Name); err == nil {
				_ = file.Close()
				names = append(names, f.Name)
			}
		}
	}
	return names
}

// openLinked opens the regular file to which a link leads. It must be below the folder, and everybody must be allowed to read
// it: a copy is readable for the program, and files of this program are not.
func (s *Store) openLinked(name string) (*os.File, fs.FileInfo, error) {
	const everybody = 0o004
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Mode()&everybody == 0) {
		err = fmt.Errorf("%s: does not lead to a regular file that everybody may read", name)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// takeLinked copies the file to which a link leads: a roll back puts the same content in force, not the link.
func (g *Stage) takeLinked(name string) error {
	file, info, err := g.store.openLinked(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	mode := fs.FileMode(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	_, err = g.Put(name, mode, file)
	return err
}

// Adopt makes a revision of the files that readers see now: the current revision and the files at names. A roll back
// returns to it.
func (s *Store) Adopt(ctx context.Context, current Revision, names []string, limits payload.Limits) (Revision, error) {
	g, err := s.Stage(limits)
	if err != nil {
		return Revision{}, err
	}
	defer func() { _ = g.Discard() }()
	for _, name := range names {
		if err := g.take(name); err != nil {
			return Revision{}, err
		}
	}
	if err := g.keepSeen(current); err != nil {
		return Revision{}, err
	}
	version := current.Version
	if version == "" {
		version = manifest.InitialVersion
	}
	return g.Seal(ctx, version, current.Sources, current.Requested)
}

// keepSeen keeps the files of the current revision. Those that were changed on disk have their accepted content, if another revision has
// it, else the content that readers see.
func (g *Stage) keepSeen(current Revision) error {
	ids, err := g.store.IDs()
	if err != nil {
		return err
	}
	_, missing, err := g.Keep(current, nil, g.store.Readable(ids))
	if err != nil {
		return err
	}
	for _, f := range missing {
		file, _, err := g.store.open(FilesPath(current.ID) + "/" + f.Name)
		if err != nil {
			continue // readers see no file
		}
		_, err = g.Put(f.Name, f.Perm(), file)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// take moves a file of the folder into the stage as a hard link, or as a copy if the kernel forbids the link, such as by
// fs.protected_hardlinks for a file of another user.
func (g *Stage) take(name string) error {
	if _, err := g.store.root.Readlink(name); err == nil {
		return g.takeLinked(name)
	}
	f, err := g.store.sum(name, g.limits.MaxUnpacked-g.size)
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
	_, err = g.Put(name, f.Perm(), file)
	return err
}

// Visible returns the revision that readers see now.
func (s *Store) Visible() (Revision, error) {
	target, err := s.root.Readlink(dataLink)
	if err != nil {
		return Revision{}, err
	}
	return s.Revision(path.Base(path.Dir(target)))
}

// Fit removes the oldest revisions from a list until the others take at most most bytes on disk. Files that revisions share
// by hard links count once; each copy of the same content counts. current is never removed.
func (s *Store) Fit(ids []string, current string, most int64) []string {
	counted := map[uint64]bool{} // by inode: all files are in one file system
	var total int64
	for i := len(ids) - 1; i >= 0; i-- {
		r, err := s.Revision(ids[i])
		if err != nil {
			continue
		}
		for _, f := range r.Files {
			info, err := s.root.Lstat(FilesPath(r.ID) + "/" + f.Name)
			if err != nil {
				continue // takes no space
			}
			if stat, ok := info.Sys().(*syscall.Stat_t); ok && !counted[stat.Ino] {
				counted[stat.Ino] = true
				total += info.Size()
			}
		}
		if total > most && ids[i] != current {
			kept := slices.Clone(ids[i+1:])
			if !slices.Contains(kept, current) {
				kept = append([]string{current}, kept...)
			}
			return kept
		}
	}
	return ids
}
