package manifest

import "path"

// Layer is what has been staged at one moment. Files that are added below it do not replace what it has. The zero value
// hides nothing.
type Layer struct{ files, folders map[string]bool }

// NewLayer is one of these files.
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

// Hides reports that a file of this name has no place below the layer: the layer has one of the name, or a folder, or a
// file where the name needs a folder.
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
