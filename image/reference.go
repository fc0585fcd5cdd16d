package image

import (
	"errors"
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// ErrReference means that a text is not an image reference.
var ErrReference = errors.New("invalid image reference")

// Reference names an image by the two parts that a NodeImage has.
type Reference struct {
	// Repository is in the short form of docker and kubectl: nginx for docker.io/library/nginx.
	Repository string
	// Tag is a tag, or a digest such as sha256:<64 hex digits>.
	Tag string
}

// Parse parses the image field of a container. Without tag and digest the tag is latest. If there are both, it uses the
// digest and drops the tag, like container runtimes.
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

// String returns the reference as the image field of a container has it.
func (r Reference) String() string {
	if r.ByDigest() {
		return r.Repository + "@" + r.Tag
	}
	return r.Repository + ":" + r.Tag
}

// Full returns the reference with the registry spelt out, as container runtimes list images:
// docker.io/library/nginx:latest. All references of an image have the same full form.
func (r Reference) Full() (string, error) {
	named, err := reference.ParseDockerRef(r.String())
	if err != nil {
		return "", fmt.Errorf("%w %q: %w", ErrReference, r.String(), err)
	}
	return named.String(), nil
}

// Location is the registry and path from which an image is pulled.
type Location struct {
	// Registry is the host, with the port if there is one.
	Registry string
	// Path is the path of the repository in the registry, for example library/nginx.
	Path string
}

// Location returns where the image is pulled from.
func (r Reference) Location() (Location, error) {
	named, err := reference.ParseDockerRef(r.String())
	if err != nil {
		return Location{}, fmt.Errorf("%w %q: %w", ErrReference, r.String(), err)
	}
	return Location{Registry: reference.Domain(named), Path: reference.Path(named)}, nil
}
