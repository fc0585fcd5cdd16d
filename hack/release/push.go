package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/refit-project/refit/hack/release/cosign"
	"github.com/refit-project/refit/hack/release/provenance"
)

// push pushes the images and then the chart, which needs them. Each is signed, and attested, before the next is pushed.
func (r *release) push(ctx context.Context) error {
	if r.Push == "" {
		return nil
	}
	predicate, remove, err := r.predicate()
	if err != nil {
		return err
	}
	defer remove()
	for _, image := range r.images {
		pushed, err := r.pushImage(ctx, image)
		if err != nil {
			return err
		}
		if err := r.attach(ctx, pushed, predicate, image.sboms); err != nil {
			return err
		}
	}
	pushed, err := r.pushChart(ctx)
	if err != nil {
		return err
	}
	return r.attach(ctx, pushed, predicate, nil)
}

// attach signs what has been pushed, and attaches its provenance and its bills of materials.
func (r *release) attach(ctx context.Context, pushed, predicate string, sboms []string) error {
	if r.cosign == nil {
		fmt.Printf("pushed %s, NOT SIGNED\n", pushed)
		return nil
	}
	if err := r.cosign.Sign(ctx, pushed); err != nil {
		return err
	}
	if err := r.cosign.Attest(ctx, pushed, cosign.Provenance, predicate); err != nil {
		return err
	}
	for _, file := range sboms {
		if err := r.cosign.Attest(ctx, pushed, cosign.SBOM, filepath.Join(r.Out, file)); err != nil {
			return err
		}
	}
	fmt.Printf("pushed and signed %s\n", pushed)
	return nil
}

// pushImage returns the name of the image with its digest.
func (r *release) pushImage(ctx context.Context, image image) (string, error) {
	tag, err := name.NewTag(r.Push + "/" + image.name + ":" + r.Version)
	if err != nil {
		return "", err
	}
	if err := unchanged(ctx, tag, func(there *remote.Descriptor) bool { return there.Digest == image.digest }); err != nil {
		return "", err
	}
	if err := remote.WriteIndex(tag, image.index, remoteOptions(ctx)...); err != nil {
		return "", fmt.Errorf("push %s: %w", tag, err)
	}
	return tag.Context().Digest(image.digest.String()).String(), nil
}

// pushChart pushes the chart as helm push does, and returns its name with its digest.
func (r *release) pushChart(ctx context.Context) (string, error) {
	const folder = "charts"
	tag, err := name.NewTag(r.Push + "/" + folder + "/refit:" + strings.TrimPrefix(r.Version, "v"))
	if err != nil {
		return "", err
	}
	same := func(there *remote.Descriptor) bool { // the digest of its manifest is not known before it is pushed
		var manifest v1.Manifest
		err := json.Unmarshal(there.Manifest, &manifest)
		return err == nil && len(manifest.Layers) == 1 && manifest.Layers[0].Digest.Hex == r.sums[r.chartFile]
	}
	if err := unchanged(ctx, tag, same); err != nil {
		return "", err
	}
	argv := []string{"go", "run", "./push", "-chart=" + filepath.Join(r.Out, r.chartFile), "-to=" + r.Push + "/" + folder, "-created=" + r.seconds()}
	if tag.Scheme() == "http" { // a registry on this machine
		argv = append(argv, "-plain-http")
	}
	digest, err := output(ctx, filepath.Join(r.Root, "hack", "chart"), argv...)
	if err != nil {
		return "", err
	}
	return tag.Context().Digest(digest).String(), nil
}

// unchanged reports an error if a tag is there and is of something else: a version that is published does not change. The same may be pushed again.
func unchanged(ctx context.Context, tag name.Tag, same func(*remote.Descriptor) bool) error {
	there, err := remote.Get(tag, remoteOptions(ctx)...)
	var refused *transport.Error
	switch {
	case errors.As(err, &refused) && (refused.StatusCode == http.StatusNotFound || refused.StatusCode == http.StatusForbidden):
		return nil // ghcr.io forbids to read what is not there
	case err != nil:
		return fmt.Errorf("look for %s: %w", tag, err)
	case !same(there):
		return fmt.Errorf("%s is there already, as %s: a version that is published does not change", tag, there.Digest)
	}
	return nil
}

func remoteOptions(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

// predicate writes what the provenance states to a file outside of the release, which remove removes.
func (r *release) predicate() (path string, remove func(), err error) {
	statement, err := os.ReadFile(filepath.Join(r.Out, provenanceFile))
	if err != nil {
		return "", nil, err
	}
	content, err := provenance.Predicate(statement)
	if err != nil {
		return "", nil, err
	}
	folder, err := os.MkdirTemp("", "refit-release-")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(folder, "predicate.json")
	return path, func() { _ = os.RemoveAll(folder) }, os.WriteFile(path, content, 0o600)
}
