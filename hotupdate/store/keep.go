package store

import (
	"fmt"
	"io/fs"
	"path"
)

// copied is up to which size, in bytes, a kept file is copied, and copies how many of one stage are: programs that write to
// files of theirs in place write to small ones. The others share an inode between revisions, since a copy takes space and
// the time to sync it.
const (
	copied = 1 << 20
	copies = 100
)

// Keep takes over files of a revision where the stage has none of the name. A file whose name is now a folder, or whose
// folder is now a file, is left out, and so is one that has the name and SHA-256 of an entry of removed. What is no
// longer the content that was accepted is not taken: another revision may have it, and what none has is returned, to be
// put into the stage by the caller. mended are the names of those that another one had.
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

// elsewhere takes a file from the first of the revisions that has its content.
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

// keep reports whether the file still had the content that the manifest says.
func (g *Stage) keep(r Revision, f File) (bool, error) {
	from := FilesPath(r.ID) + "/" + f.Name
	if f.Size <= copied && g.copies < copies {
		g.copies++
		return g.copyOf(from, f)
	}
	if sum, err := g.store.sum(from); err != nil || sum.SHA256 != f.SHA256 {
		return false, nil //nolint:nilerr // a link, or nothing, in place of the file is another content as well
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

// Changed is the error of files that no revision on disk has any more.
func Changed(r Revision, missing []File) error {
	return fmt.Errorf("%w: %s: %s, and %d more", ErrTampered, r.ID, missing[0].Name, len(missing)-1)
}

// Remains are the names of a revision whose manifest cannot be used; Files have nothing else. It is what Publish needs to
// leave it or to return to it.
func (s *Store) Remains(id string) Revision {
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

// Readable are those of the revisions whose manifest can be used, in the same order.
func (s *Store) Readable(ids []string) []Revision {
	var all []Revision
	for _, id := range ids {
		if r, err := s.Revision(id); err == nil {
			all = append(all, r)
		}
	}
	return all
}
