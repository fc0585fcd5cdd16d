// Package oci makes container images out of files, without Docker and the same bytes every time, and
// reads and pushes the archives they are kept in. It builds no programs.
package oci

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// File is one entry of a layer.
type File struct {
	// Path is where the file is in the image, without a leading slash.
	Path string
	// Mode holds type and permissions. A symbolic link points to Link.
	Mode fs.FileMode
	Link string
	// Content is the content of a regular file, unless Source names a file on disk that has it.
	Content []byte
	Source  string
}

// Layer makes a layer of the files, all owned by root and dated at created. The folders above each file
// are made with mode 0755 when they are not among the files.
func Layer(files []File, created time.Time) (v1.Layer, error) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for _, file := range complete(files) {
		if err := writeFile(writer, file, created); err != nil {
			return nil, fmt.Errorf("layer: %s: %w", file.Path, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	}, tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	return layer, nil
}

// complete sorts the files by path, keeps the last of those with the same path and adds missing folders.
func complete(files []File) []File {
	byPath := map[string]File{}
	for _, file := range files {
		file.Path = strings.Trim(path.Clean("/"+file.Path), "/")
		byPath[file.Path] = file
	}
	for _, name := range slices.Collect(maps.Keys(byPath)) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := byPath[dir]; !ok {
				byPath[dir] = File{Path: dir, Mode: fs.ModeDir | 0o755}
			}
		}
	}
	delete(byPath, "")
	all := make([]File, 0, len(byPath))
	for _, file := range byPath {
		all = append(all, file)
	}
	slices.SortFunc(all, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return all
}

func writeFile(writer *tar.Writer, file File, created time.Time) error {
	header := &tar.Header{
		Name:    file.Path,
		Mode:    int64(file.Mode.Perm()),
		ModTime: created,
		Format:  tar.FormatPAX,
	}
	if file.Mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	content := file.Content
	switch {
	case file.Mode.IsDir():
		header.Typeflag = tar.TypeDir
		header.Name += "/"
	case file.Mode&fs.ModeSymlink != 0:
		header.Typeflag = tar.TypeSymlink
		header.Linkname = file.Link
	case file.Mode.IsRegular():
		header.Typeflag = tar.TypeReg
		if file.Source != "" {
			var err error
			if content, err = os.ReadFile(file.Source); err != nil {
				return err
			}
		}
		header.Size = int64(len(content))
	default:
		return fmt.Errorf("mode %s does not belong in an image", file.Mode)
	}
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	if header.Typeflag == tar.TypeReg {
		if _, err := writer.Write(content); err != nil {
			return err
		}
	}
	return nil
}

// Tree lists the content of a folder as files of a layer. What keep refuses is left out.
func Tree(root string, keep func(path string) bool) ([]File, error) {
	var files []File
	err := filepath.WalkDir(root, func(source string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, source)
		if err != nil || name == "." {
			return err
		}
		if !keep(name) {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		file := File{Path: name, Mode: info.Mode(), Source: source}
		if info.Mode()&fs.ModeSymlink != 0 {
			if file.Link, err = os.Readlink(source); err != nil {
				return err
			}
		}
		files = append(files, file)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", root, err)
	}
	return files, nil
}
