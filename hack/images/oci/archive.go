package oci

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Annotations that name an image in an archive: the one of the image layout specification, and the one by
// which containerd names what it imports.
const (
	refNameAnnotation    = "org.opencontainers.image.ref.name"
	containerdAnnotation = "io.containerd.image.name"
)

// Write writes the image to a tar archive in the OCI image layout, under the full name reference.
func Write(path, reference string, index v1.ImageIndex, created time.Time) error {
	parsed, err := name.NewTag(reference)
	if err != nil {
		return fmt.Errorf("write image archive: %w", err)
	}
	temporary, err := os.MkdirTemp(filepath.Dir(path), ".layout-")
	if err != nil {
		return fmt.Errorf("write image archive: %w", err)
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	top := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: index,
		Descriptor: v1.Descriptor{Annotations: map[string]string{
			refNameAnnotation:    parsed.TagStr(),
			containerdAnnotation: parsed.Name(),
		}},
	})
	if _, err := layout.Write(temporary, top); err != nil {
		return fmt.Errorf("write image archive: %w", err)
	}
	if err := archive(path, temporary, created); err != nil {
		return fmt.Errorf("write image archive: %w", err)
	}
	return nil
}

func archive(path, dir string, created time.Time) (err error) {
	files, err := Tree(dir, func(string) bool { return true })
	if err != nil {
		return err
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	writer := tar.NewWriter(out)
	for _, file := range complete(files) {
		if err := writeFile(writer, file, created); err != nil {
			return err
		}
	}
	return writer.Close()
}

// Push sends every image of an archive, in the OCI image layout or as "docker save" writes it, to
// registry, which is host:port or host:port/prefix. Each keeps its path and tag: ghcr.io/a/b:c becomes
// registry/a/b:c. It returns the names it pushed.
func Push(archivePath, registry string, options ...remote.Option) ([]string, error) {
	temporary, err := os.MkdirTemp("", "image-")
	if err != nil {
		return nil, fmt.Errorf("push %s: %w", archivePath, err)
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	if err := extract(archivePath, temporary); err != nil {
		return nil, fmt.Errorf("push %s: %w", archivePath, err)
	}
	var pushed []string
	if _, err := os.Stat(filepath.Join(temporary, "oci-layout")); err == nil {
		pushed, err = pushLayout(temporary, registry, options)
		if err != nil {
			return pushed, fmt.Errorf("push %s: %w", archivePath, err)
		}
		return pushed, nil
	}
	pushed, err = pushDocker(archivePath, registry, options)
	if err != nil {
		return pushed, fmt.Errorf("push %s: %w", archivePath, err)
	}
	return pushed, nil
}

// Target is the name under which an image goes to registry.
func Target(reference, registry string) (name.Tag, error) {
	tag, err := name.NewTag(reference)
	if err != nil {
		return name.Tag{}, err
	}
	return name.NewTag(registry + "/" + tag.RepositoryStr() + ":" + tag.TagStr())
}

func pushLayout(dir, registry string, options []remote.Option) ([]string, error) {
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return nil, err
	}
	var pushed []string
	for _, entry := range manifest.Manifests {
		reference := entry.Annotations[containerdAnnotation]
		if reference == "" {
			reference = entry.Annotations[refNameAnnotation]
		}
		target, err := Target(reference, registry)
		if err != nil {
			return pushed, fmt.Errorf("image %s has no usable name: %w", entry.Digest, err)
		}
		if err := pushEntry(top, entry, target, options); err != nil {
			return pushed, err
		}
		pushed = append(pushed, target.Name())
	}
	if len(pushed) == 0 {
		return nil, errors.New("no image in it")
	}
	return pushed, nil
}

func pushEntry(top v1.ImageIndex, entry v1.Descriptor, target name.Tag, options []remote.Option) error {
	if entry.MediaType.IsIndex() {
		index, err := top.ImageIndex(entry.Digest)
		if err != nil {
			return err
		}
		return remote.WriteIndex(target, index, options...)
	}
	image, err := top.Image(entry.Digest)
	if err != nil {
		return err
	}
	return remote.Write(target, image, options...)
}

func pushDocker(archivePath, registry string, options []remote.Option) ([]string, error) {
	opener := func() (io.ReadCloser, error) { return os.Open(archivePath) }
	manifest, err := tarball.LoadManifest(opener)
	if err != nil {
		return nil, err
	}
	var pushed []string
	for _, entry := range manifest {
		for _, reference := range entry.RepoTags {
			source, err := name.NewTag(reference)
			if err != nil {
				return pushed, err
			}
			image, err := tarball.Image(opener, &source)
			if err != nil {
				return pushed, err
			}
			target, err := Target(reference, registry)
			if err != nil {
				return pushed, err
			}
			if err := remote.Write(target, image, options...); err != nil {
				return pushed, err
			}
			pushed = append(pushed, target.Name())
		}
	}
	if len(pushed) == 0 {
		return nil, errors.New("no named image in it")
	}
	return pushed, nil
}

// extract unpacks regular files and folders; the root keeps names from leading out of dir.
func extract(archivePath, dir string) error {
	in, err := os.Open(archivePath)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	reader := tar.NewReader(in)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.Clean(header.Name)
		switch header.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(name, 0o755)
		case tar.TypeReg:
			err = extractFile(root, name, reader)
		}
		if err != nil {
			return err
		}
	}
}

func extractFile(root *os.Root, name string, content io.Reader) (err error) {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	out, err := root.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, content)
	return err
}
