package store

import (
	"fmt"
	"io/fs"
	"path"
)

// Kept files of up to copied bytes are copied, at most copies in one stage, because programs that change their files in
// place change small ones. Larger files share an inode between revisions, because a copy takes space and the time to sync
// it.
const (
	copied = 1 << 20
	copies = 100
)

// Keep copies files of a revision to the stage, except names that the stage already has. It leaves out a file whose name is now
// a folder or whose folder is now a file, and a file with the name and SHA-256 of an entry of removed. If a file was changed on
// disk, Keep takes it from another revision; mended has the names of such files. missing has the files that no revision has;
// the caller puts them into the stage.
func (g *Stage) Keep(r Revision, removed map[string]string, others []Revision) (mended []string, missing []File, err error) {
	staged := g.Layer()
	for _, f := range r.Files {
		if staged.Hides(f.Name) || removed[f.Name] == f.SHA256 {
			continue
		}
		g.kept = true
		switch kept, err := g.keep(r, f); {
		case err != nil:
			return nil, nil, err
		case kept:
			continue
		}
		switch found, err := g.elsewhere(f, others); {
		case err != nil:
			return nil, nil, err
		case found:
			mended = append(mended, f.Name)
		default:
			missing = append(missing, f)
		}
	}
	return mended, missing, nil
}

// elsewhere takes a file from the first revision that has its content.
func (g *Stage) elsewhere(f File, others []Revision) (bool, error) {
	for _, r := range others {
		for _, o := range r.Files {
			if o.SHA256 != f.SHA256 {
				continue
			}
			if kept, err := g.copyOf(FilesPath(r.ID)+"/"+o.Name, f); err != nil || kept {
				return kept, err
			}
		}
	}
	return false, nil
}

// keep takes over a file and reports whether it still had the content in the manifest.
func (g *Stage) keep(r Revision, f File) (bool, error) {
	from := FilesPath(r.ID) + "/" + f.Name
	if f.Size <= copied && g.copies < copies {
		g.copies++
		return g.copyOf(from, f)
	}
	if sum, err := g.store.sum(from, f.Size); err != nil || sum.SHA256 != f.SHA256 {
		return false, nil //nolint:nilerr // a link, or nothing, in place of the file counts as changed content
	}
	return true, g.link(from, f)
}

// copyOf copies a file, and reports whether it has the content of f.
func (g *Stage) copyOf(from string, f File) (bool, error) {
	file, info, err := g.store.open(from)
	if err != nil || info.Size() != f.Size {
		if err == nil {
			_ = file.Close()
		}
		return false, nil //nolint:nilerr // as in keep
	}
	defer func() { _ = file.Close() }()
	written, err := g.put(f.Name, f.Perm(), file)
	switch {
	case err != nil:
		return false, err
	case written.SHA256 != f.SHA256:
		return false, g.Drop(f.Name)
	}
	return true, g.add(f)
}

func (g *Stage) link(from string, f File) error {
	if err := g.folders(path.Dir(f.Name)); err != nil {
		return collision(f.Name, err)
	}
	if err := g.store.root.Link(from, g.Path()+"/"+f.Name); err != nil {
		return collision(f.Name, err)
	}
	return g.add(f)
}

// Changed returns the error for files that no revision on disk has.
func Changed(r Revision, missing []File) error {
	return fmt.Errorf("%w: %s: %s, and %d more", ErrTampered, r.ID, missing[0].Name, len(missing)-1)
}

// NamesOnly returns the file names of a revision whose manifest cannot be used. Its Files have only names, which is all that
// Publish needs.
func (s *Store) NamesOnly(id string) Revision {
	r := Revision{ID: id}
	if !validID.MatchString(id) {
		return r
	}
	prefix := FilesPath(id) + "/"
	_ = fs.WalkDir(s.root.FS(), FilesPath(id), func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && len(name) > len(prefix) {
			r.Files = append(r.Files, File{Name: name[len(prefix):]})
		}
		return nil // what cannot be listed keeps its link, which leads nowhere
	})
	return r
}

// Readable returns the revisions whose manifest can be used, in the same order.
func (s *Store) Readable(ids []string) []Revision {
	var all []Revision
	for _, id := range ids {
		if r, err := s.Revision(id); err == nil {
			all = append(all, r)
		}
	}
	return all
}
