package oci

import (
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image makes an image of layers for one platform, written as "linux/amd64".
func Image(platform string, config v1.Config, created time.Time, layers ...v1.Layer) (v1.Image, error) {
	parsed, err := v1.ParsePlatform(platform)
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, layer := range layers {
		image, err = mutate.Append(image, mutate.Addendum{Layer: layer, MediaType: types.OCILayer})
		if err != nil {
			return nil, fmt.Errorf("image: %w", err)
		}
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Variant = parsed.OS, parsed.Architecture, parsed.Variant
	file.Created = v1.Time{Time: created}
	file.Config = config
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	return image, nil
}

// Index makes one image for several platforms of one image for each.
func Index(images ...v1.Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, image := range images {
		file, err := image.ConfigFile()
		if err != nil {
			return nil, fmt.Errorf("index: %w", err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: file.Platform()},
		})
	}
	return index, nil
}
