package image

import (
	"errors"
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// ErrReference means that a text is no reference of an image.
var ErrReference = errors.New("invalid image reference")

// Reference names an image in a registry in the two parts that a NodeImage has.
type Reference struct {
	// Repository in the short form of docker and kubectl: nginx for docker.io/library/nginx.
	Repository string
	// Tag, or a digest as sha256:<64 hex digits>.
	Tag string
}

// Parse takes apart what a container's image field holds. Without tag and digest the tag is latest. Where there are
// both, the digest counts and the tag is dropped, as container runtimes do.
func Parse(text string) (Reference, error) {
	named, err := reference.ParseDockerRef(text)
	if err != nil {
		return Reference{}, fmt.Errorf("%w %q: %w", ErrReference, text, err)
	}
	parsed := Reference{Repository: reference.FamiliarName(named)}
	switch named := named.(type) {
	case reference.Digested:
		parsed.Tag = named.Digest().String()
	case reference.Tagged:
		parsed.Tag = named.Tag()
	}
	return parsed, nil
}

// ByDigest reports whether the reference names a digest.
func (r Reference) ByDigest() bool { return strings.Contains(r.Tag, ":") }

// String is the reference as a container's image field takes it.
func (r Reference) String() string {
	if r.ByDigest() {
		return r.Repository + "@" + r.Tag
	}
	return r.Repository + ":" + r.Tag
}

// Full is the reference with the registry spelt out, as container runtimes list images: docker.io/library/nginx:latest.
// Two references of one image have one full form.
func (r Reference) Full() (string, error) {
	named, err := reference.ParseDockerRef(r.String())
	if err != nil {
		return "", fmt.Errorf("%w %q: %w", ErrReference, r.String(), err)
	}
	return named.String(), nil
}

// Location is where an image is pulled from.
type Location struct {
	// Registry is the host, with a port if one is given.
	Registry string
	// Path of the repository in the registry, as library/nginx.
	Path string
}

// Location tells where the image is pulled from.
func (r Reference) Location() (Location, error) {
	named, err := reference.ParseDockerRef(r.String())
	if err != nil {
		return Location{}, fmt.Errorf("%w %q: %w", ErrReference, r.String(), err)
	}
	return Location{Registry: reference.Domain(named), Path: reference.Path(named)}, nil
}
