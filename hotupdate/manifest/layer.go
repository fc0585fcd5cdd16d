package manifest

import "path"

// Layer has the names of the files staged so far. Files that are added below it do not replace them. The zero value hides
// nothing.
type Layer struct{ files, folders map[string]bool }

// NewLayer returns the layer of these files.
func NewLayer(files []File) Layer {
	l := Layer{files: map[string]bool{}, folders: map[string]bool{}}
	for _, f := range files {
		l.files[f.Name] = true
		for dir := path.Dir(f.Name); dir != "."; dir = path.Dir(dir) {
			l.folders[dir] = true
		}
	}
	return l
}

// Hides reports whether the layer hides a file with this name: it has a file or folder with the name, or a file where the
// name needs a folder.
func (l Layer) Hides(name string) bool {
	if l.files[name] || l.folders[name] {
		return true
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if l.files[dir] {
			return true
		}
	}
	return false
}
